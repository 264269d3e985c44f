#include <coir/http/wire/path.h>

#include <algorithm>
#include <cstdint>

#include "http/text/characters.h"

namespace coir::http {
namespace {

// Key is an extension of up to eight lower-case characters in one word, the first in the highest byte, so that keys
// sort as their extensions do.
using Key = std::uint64_t;

constexpr Key key_of(std::string_view extension) noexcept {
  Key key = 0;
  for (const char c : extension) {
    const bool upper = c >= 'A' && c <= 'Z';
    key = key << 8 | static_cast<unsigned char>(upper ? c | 0x20 : c);
  }
  return key << 8 * (8 - extension.size());
}

struct Entry {
  Key key;
  std::string_view type;
};

constexpr Entry kTypes[] = {
    {key_of("7z"), "application/x-7z-compressed"},
    {key_of("avif"), "image/avif"},
    {key_of("bin"), "application/octet-stream"},
    {key_of("bmp"), "image/bmp"},
    {key_of("bz2"), "application/x-bzip2"},
    {key_of("css"), "text/css; charset=utf-8"},
    {key_of("csv"), "text/csv; charset=utf-8"},
    {key_of("gif"), "image/gif"},
    {key_of("gz"), "application/gzip"},
    {key_of("htm"), "text/html; charset=utf-8"},
    {key_of("html"), "text/html; charset=utf-8"},
    {key_of("ico"), "image/vnd.microsoft.icon"},
    {key_of("jpeg"), "image/jpeg"},
    {key_of("jpg"), "image/jpeg"},
    {key_of("js"), "text/javascript; charset=utf-8"},
    {key_of("json"), "application/json"},
    {key_of("log"), "text/plain; charset=utf-8"},
    {key_of("m3u8"), "application/vnd.apple.mpegurl"},
    {key_of("md"), "text/markdown; charset=utf-8"},
    {key_of("mjs"), "text/javascript; charset=utf-8"},
    {key_of("mp3"), "audio/mpeg"},
    {key_of("mp4"), "video/mp4"},
    {key_of("ogg"), "audio/ogg"},
    {key_of("otf"), "font/otf"},
    {key_of("pdf"), "application/pdf"},
    {key_of("png"), "image/png"},
    {key_of("svg"), "image/svg+xml"},
    {key_of("tar"), "application/x-tar"},
    {key_of("ts"), "video/mp2t"},
    {key_of("ttf"), "font/ttf"},
    {key_of("txt"), "text/plain; charset=utf-8"},
    {key_of("wasm"), "application/wasm"},
    {key_of("wav"), "audio/wav"},
    {key_of("webm"), "video/webm"},
    {key_of("webp"), "image/webp"},
    {key_of("woff"), "font/woff"},
    {key_of("woff2"), "font/woff2"},
    {key_of("xhtml"), "application/xhtml+xml"},
    {key_of("xml"), "application/xml"},
    {key_of("zip"), "application/zip"},
    {key_of("zst"), "application/zstd"},
};
static_assert(std::ranges::is_sorted(kTypes, {}, &Entry::key));

}  // namespace

std::string_view media_type(std::string_view file_name) noexcept {
  constexpr std::string_view unknown = "application/octet-stream";
  const std::size_t dot = file_name.rfind('.');
  if (dot == std::string_view::npos) return unknown;
  const std::string_view extension = after(file_name, dot + 1);
  if (extension.empty() || extension.size() > 8) return unknown;
  const Key key = key_of(extension);
  const auto* const entry = std::ranges::lower_bound(kTypes, key, {}, &Entry::key);
  return entry != std::end(kTypes) && entry->key == key ? entry->type : unknown;
}

}  // namespace coir::http
