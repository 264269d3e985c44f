// One handler, run in one of three ways, for scripts/bench modes:
//
//   modes_server serial | threads NUMBER | fibers
//
// prints its port and serves until SIGTERM.

#include <stdlib.h>
#include <string.h>

#include "tests/support/serve_printed.h"

using namespace coir;

namespace {

void hello(http::Exchange& exchange) {
  exchange.respond(200, "text/plain", "hello, keep-alive\n");
}

}  // namespace

int main(int argc, char** argv) {
  const char* const way = argc > 1 ? argv[1] : "";
  http::ServerOptions options = {.max_connections = 16'384, .idle_timeout = std::chrono::minutes(10)};
  if (argc > 2) options.max_active = static_cast<std::size_t>(atoi(argv[2]));
  return test::serve_printed(hello, options,
                             strcmp(way, "serial") == 0    ? http::Mode::serial
                             : strcmp(way, "threads") == 0 ? http::Mode::threads
                                                           : http::Mode::fibers);
}
