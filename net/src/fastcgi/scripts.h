#pragma once

#include <coir/error.h>

#include <cstddef>
#include <expected>
#include <span>
#include <string_view>

namespace coir::http {

class FileTree;

// FastCgiScript is what an application is told of the script that a request is for (RFC 3875, 4.1).
struct FastCgiScript {
  std::string_view name = {};  // SCRIPT_NAME: the script's path, decoded, with a slash in front; empty: "/" alone
  std::string_view info = {};  // PATH_INFO: the rest of the path; empty: nothing
};

// find_script finds the file that answers a request's path: the shortest beginning of the path, up to a slash or its end,
// that names a regular file below `files`. For a path ending in '/' that is `index` in that folder, if `index` is not
// empty. An application never gets a path that names no file. With `suffix` (".php") the file's name ends so. `path` is
// the request's, undecoded; the views point into `memory`, at least path.size() + index.size() + 3 bytes. Errors: invalid
// (the path is malformed or leaves the root: 400), not_found (404), unsupported (it names a hidden script, whose source must
// not be shown either: 404), limit (it does not fit: 414; no descriptor is left), no_memory, system (503). On a fiber;
// one system call or more for each segment of the path.
[[nodiscard]] std::expected<FastCgiScript, Error> find_script(std::string_view path, FileTree& files,
                                                              std::string_view suffix, std::string_view index,
                                                              std::span<char> memory) noexcept;

}  // namespace coir::http
