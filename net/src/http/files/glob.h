#pragma once

#include <string_view>

namespace coir::http {

// matches_glob tells whether `pattern` fits a file's path below the root, which has no slash in front. '*' stands for
// any run of characters, slashes included, '?' for any one. A pattern that begins with '/' is compared with the whole
// path, another with what stands behind its last slash. Costs pattern times path at most.
bool matches_glob(std::string_view pattern, std::string_view path) noexcept;

}  // namespace coir::http
