#include "fastcgi/scripts.h"

#include <coir/http/files.h>
#include <coir/http/wire/path.h>
#include <errno.h>
#include <string.h>

#include <algorithm>

namespace coir::http {
namespace {

// is_nowhere tells whether the files do not find it either: who serves the files cannot open it now.
bool is_nowhere(Error error) noexcept {
  return error == ErrorCode::not_found || error.sys == ENOTDIR || error.sys == EACCES || error.sys == ELOOP ||
         error.sys == EXDEV;
}

// names_script tells whether a part of the path ends in the suffix.
bool names_script(std::string_view path, std::string_view suffix) noexcept {
  for (std::size_t end = 0; end != path.npos;) {
    end = path.find('/', end + 1);
    if (path.substr(0, end).ends_with(suffix)) return true;
  }
  return false;
}

}  // namespace

std::expected<FastCgiScript, Error> find_script(std::string_view path, FileTree& files, std::string_view suffix,
                                                std::string_view index, std::span<char> memory) noexcept {
  if (memory.size() < path.size() + index.size() + 3) return std::unexpected(Error{ErrorCode::limit});
  // A slash goes in front, and one behind.
  const ResolvedPath resolved = resolve_path(path, memory.subspan(1, path.size() + 1));
  if (resolved.status != 0) {
    return std::unexpected(Error{resolved.status == 400   ? ErrorCode::invalid
                                 : resolved.status == 404 ? ErrorCode::not_found
                                                          : ErrorCode::limit});
  }
  const bool is_root = resolved.relative == ".";
  char* const begin = memory.data();
  const std::size_t size = is_root ? 0 : resolved.relative.size();
  begin[0] = '/';
  if (size != 0) memmove(begin + 1, resolved.relative.data(), size);
  std::size_t end = 1 + size;
  // Nothing that is hidden runs. The files may show some of it.
  if (const std::string_view whole(begin, end); whole.find("/.") != whole.npos) {
    const bool is_source = !suffix.empty() && names_script(whole, suffix);
    return std::unexpected(Error{is_source ? ErrorCode::unsupported : ErrorCode::not_found});
  }
  for (std::size_t at = 1; at <= end && size != 0; ++at) {
    if (at != end && begin[at] != '/') continue;
    const std::string_view name(begin, at);
    if (!name.ends_with(suffix)) continue;
    const char kept = std::exchange(begin[at], '\0');
    const auto there = files.has(begin + 1);
    begin[at] = kept;
    if (there) {
      if (resolved.directory) begin[end++] = '/';
      return FastCgiScript{.name = name, .info = {begin + at, end - at}};
    }
    if (!is_nowhere(there.error())) return std::unexpected(there.error());
  }
  if (!resolved.directory || index.empty()) return std::unexpected(Error{ErrorCode::not_found});
  if (size != 0) begin[end++] = '/';
  memcpy(begin + end, index.data(), index.size());
  begin[end += index.size()] = '\0';
  if (auto there = files.has(begin + 1); !there)
    return std::unexpected(is_nowhere(there.error()) ? Error{ErrorCode::not_found} : there.error());
  return FastCgiScript{.name = {begin, end}};
}

}  // namespace coir::http
