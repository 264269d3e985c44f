#pragma once

#include <coir/http/files.h>

#include <cstdint>
#include <span>
#include <string_view>

namespace coir::http {

// The exchange's scratch memory holds the path in front, the content of a cached file behind it; a path that reaches
// into the latter is too long for the cache.
inline constexpr std::size_t kContentAt = 256;

// Target is what a request asks a FileTree for.
struct FileTree::Target {
  std::string_view path;   // below the root, as resolve_path left it; NUL-terminated
  bool directory = false;  // it names a directory, whose index is the file
  bool cacheable = false;
  std::uint32_t changes_seen = 0;  // FileCache::count_of_changes before it was opened
  std::span<char> scratch;
  std::string_view file;  // the path of the file itself, in scratch; NUL-terminated, with room for a suffix behind it

  // content is the memory for the content of a cacheable file.
  std::span<char> content() const noexcept { return scratch.subspan(kContentAt, kCachedFileBytes); }
  // work is memory for open_beneath, behind the path.
  std::span<char> work() const noexcept;
  std::string_view name() const noexcept;
};

}  // namespace coir::http
