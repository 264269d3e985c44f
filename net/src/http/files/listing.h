#pragma once

#include <coir/http/exchange.h>

#include <string_view>

namespace coir::http {

class OpenFile;

// list_folder answers with a page of links to what lies in a directory, open by name only, in the order of its names'
// bytes. `path` is the directory's below the root, "." for the root itself. Names that begin with a dot are left
// out without `dot_files`. 64 KB, charged to account::files, hold the names while they are sent; a directory with more
// of them is read once for each such share. Its reads run beside the worker.
void list_folder(Exchange& exchange, const OpenFile& folder, std::string_view path, bool dot_files) noexcept;

}  // namespace coir::http
