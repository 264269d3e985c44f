#pragma once

#include <coir/http/exchange.h>

namespace coir::http {

class FileTree;
class Server;

// write_metrics answers with the state of the process in the text format of Prometheus, version 0.0.4: the runtime's
// fibers, stacks and waits, the server's connections, responses and bytes, and the resident memory. `files` may be
// null.
void write_metrics(Exchange& exchange, const Server& server, const FileTree* files) noexcept;

}  // namespace coir::http
