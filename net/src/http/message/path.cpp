#include <coir/http/path.h>

#include "http/message/characters.h"

namespace coir::http {
namespace {

// decode_segment decodes the segment at the start of `raw` to `out`, takes it away and returns a status, 0 when it is
// in order.
std::uint16_t decode_segment(std::string_view& raw, char* out, std::size_t& size) noexcept {
  std::size_t at = 0;
  for (size = 0; at < raw.size() && raw[at] != '/'; ++size) {
    char c = raw[at++];
    if (c == '%') {
      if (raw.size() - at < 2 || !is(raw[at], kHex) || !is(raw[at + 1], kHex)) return 400;
      c = static_cast<char>(hex_value(raw[at]) * 16 + hex_value(raw[at + 1]));
      if (c == '/') return 404;
      at += 2;
    }
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return 400;
    out[size] = c;
  }
  raw.remove_prefix(at);
  return 0;
}

}  // namespace

ResolvedPath resolve_path(std::string_view raw, std::span<char> out) noexcept {
  if (raw.empty() || raw[0] != '/') return {.status = 400};
  // What is written never overtakes what is read, so this is room enough for all that follows.
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
