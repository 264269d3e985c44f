#pragma once

#include <coir/error.h>

#include <expected>

namespace coir::http {

// open_writable opens the folder in which a FileTree may be changed, below `root`, and removes the temporary files that
// a process has left there that was killed in the middle of a PUT. Returns its descriptor, by name only. Errors:
// not_found, limit (no descriptor is left), system (ENOTDIR ...).
std::expected<int, Error> open_writable(int root, const char* folder) noexcept;

}  // namespace coir::http
