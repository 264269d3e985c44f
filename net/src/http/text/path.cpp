#include <coir/http/wire/path.h>

#include "http/text/characters.h"

namespace coir::http {
namespace {

// decode_segment decodes the segment at the start of `raw` to `out`, takes it away and returns a status, 0 when it is
// in order.
std::uint16_t decode_segment(std::string_view& raw, char* out, std::size_t& size) noexcept {
  for (size = 0;; ++size) {
    std::size_t plain = 0;
    for (; plain < raw.size() && !is(raw[plain], kTargetStop) && raw[plain] != '/'; ++plain) out[size++] = raw[plain];
    raw = after(raw, plain);
    if (raw.empty() || raw[0] == '/') return 0;
    const int byte = take_decoded(raw);
    if (byte == '/') return 404;
    if (byte < 0x20 || byte == 0x7f) return 400;
    out[size] = static_cast<char>(byte);
  }
}

}  // namespace

ResolvedPath resolve_path(std::string_view raw, std::span<char> out) noexcept {
  if (raw.empty() || raw[0] != '/') return {.status = 400};
  // Writing never overtakes reading, so this is room enough for all that follows.
  if (out.size() <= raw.size()) return {.status = 414};
  char* const path = out.data();
  std::size_t end = 0;
  bool directory = true;
  while (!raw.empty()) {
    raw.remove_prefix(1);
    std::size_t start = end;
    if (end != 0) path[start++] = '/';
    std::size_t size = 0;
    if (const std::uint16_t status = decode_segment(raw, path + start, size)) return {.status = status};
    const std::string_view segment(path + start, size);
    directory = segment.empty() || segment == "." || segment == "..";
    if (segment == "..") {
      if (end == 0) return {.status = 400};
      while (end != 0 && path[--end] != '/') continue;
    } else if (!directory) {
      end = start + size;
    }
  }
  if (end == 0) path[end++] = '.';
  path[end] = '\0';
  return {.directory = directory, .relative = {path, end}};
}

}  // namespace coir::http
