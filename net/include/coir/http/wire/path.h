#pragma once

// From a request's path to a file.
//
//   const ResolvedPath found = resolve_path("/a/../index.html", buffer);
//   if (found.status == 0) show(found.relative, media_type(found.relative));      // "index.html", "text/html; ..."

#include <cstdint>
#include <span>
#include <string_view>

namespace coir::http {

// ResolvedPath is the outcome of resolve_path. When `status` is 0, `relative` is a path without a leading or trailing
// slash, "." for the root itself, with a NUL behind it, so that relative.data() goes to openat(2) as it is.
struct ResolvedPath {
  std::uint16_t status = 0;  // 400: malformed or leaves the root; 404: can name no file; 414: does not fit
  bool directory = false;    // the target ended in '/' (or in "/." or "/.."): it names a directory
  std::string_view relative{};
};

// resolve_path turns the path of a request target into a file's path below a root. Percent-encoding is decoded exactly
// once; then "." segments are dropped, ".." takes the segment before it away (above the root: 400), and runs of slashes
// count as one. %00, other controls and malformed escapes are 400; %2F is 404, for no file name holds a slash; a
// backslash and bytes over 127 are part of the name. `raw` begins with '/'. `out` needs raw.size() + 1 bytes, at
// least 2.
//
// It works on text alone: symbolic links are for the code that opens the file to judge.
[[nodiscard]] ResolvedPath resolve_path(std::string_view raw, std::span<char> out) noexcept;

// media_type (mime.cpp) returns the Content-Type for a file name by its extension, compared without case;
// "application/octet-stream" when it has none or an unknown one. Text is declared to be UTF-8. The view is static.
std::string_view media_type(std::string_view file_name) noexcept;

}  // namespace coir::http
