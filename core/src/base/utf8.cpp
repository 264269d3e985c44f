#include <coir/utf8.h>

#include <cstdint>
#include <cstring>

namespace coir {

namespace {

// sequence_length is how many bytes the character at `at` takes, 0 where there is none. The second byte's range depends
// on the first (RFC 3629, section 4).
std::size_t sequence_length(const unsigned char* at, std::size_t left) noexcept {
  const unsigned char first = at[0];
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  const std::size_t length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (left < length) return 0;
  const unsigned char low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const unsigned char high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (at[1] < low || at[1] > high) return 0;
  for (std::size_t i = 2; i < length; ++i) {
    if ((at[i] & 0xc0) != 0x80) return 0;
  }
  return length;
}

}  // namespace

bool is_utf8(std::string_view text) noexcept {
  const auto* at = reinterpret_cast<const unsigned char*>(text.data());
  for (std::size_t left = text.size(); left != 0;) {
    if (std::uint64_t word; left >= sizeof word) {
      std::memcpy(&word, at, sizeof word);
      if ((word & 0x8080808080808080u) == 0) {
        at += sizeof word;
        left -= sizeof word;
        continue;
      }
    }
    const std::size_t length = sequence_length(at, left);
    if (length == 0) return false;
    at += length;
    left -= length;
  }
  return true;
}

}  // namespace coir
