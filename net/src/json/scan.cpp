#include "json/scan.h"

#include <string.h>

#include <bit>
#include <cstdint>

namespace coir::detail {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::uint64_t kOnes = 0x0101'0101'0101'0101;

// zero_bytes has the high bit of each byte of `word` that is 0; above the lowest one it may have others.
constexpr std::uint64_t zero_bytes(std::uint64_t word) noexcept {
  return (word - kOnes) & ~word & (kOnes << 7);
}

// string_end returns the place of the quote that ends a string whose content begins at `at`, or the text's end. Eight
// bytes are looked at together: most of a message is names.
std::size_t string_end(std::string_view text, std::size_t at) noexcept {
  while (at < text.size()) {
    if (text.size() - at >= sizeof(std::uint64_t)) {
      std::uint64_t word;
      memcpy(&word, text.data() + at, sizeof word);
      const std::uint64_t found = zero_bytes(word ^ kOnes * '"') | zero_bytes(word ^ kOnes * '\\');
      if (found == 0) {
        at += sizeof word;
        continue;
      }
      at += static_cast<std::size_t>(std::countr_zero(found)) / 8;
    }
    if (text[at] == '"') return at;
    at += text[at] == '\\' ? 2 : 1;
  }
  return text.size();
}

}  // namespace

JsonScan scan_json(std::string_view text, std::size_t max_depth) noexcept {
  JsonScan scan;
  std::size_t depth = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    switch (text[at]) {
      case '"':
        at = string_end(text, at + 1);
        break;
      case '[':
      case '{':
        ++scan.values;
        if (++depth > max_depth && !scan.too_deep) {
          scan.too_deep = true;
          scan.too_deep_at = at;
        }
        break;
      case ']':
      case '}':
        if (depth > 0) --depth;
        break;
      case ',':
      case ':':
        ++scan.values;
        break;
      default:
        break;
    }
  }
  return scan;
}

}  // namespace coir::detail
