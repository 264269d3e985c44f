#include <coir/utf8.h>

#include <cstring>

namespace coir {

bool is_utf8(std::string_view bytes) noexcept {
  Utf8Checker checker;
  return checker.feed(bytes) && checker.complete();
}

std::size_t Utf8Checker::accept(std::string_view bytes) noexcept {
  std::size_t at = 0;
  while (at < bytes.size()) {
    const auto byte = static_cast<std::uint8_t>(bytes[at]);
    if (pending_ != 0) {
      if (byte < least_ || byte > most_) return at;
      least_ = 0x80;
      most_ = 0xbf;
      ++pending_;
      if (--missing_ == 0) pending_ = 0;
      ++at;
      continue;
    }
    if (byte >= 0x80) {
      if (!begin(byte)) return at;
      ++at;
      continue;
    }
    for (++at; bytes.size() - at >= sizeof(std::uint64_t); at += sizeof(std::uint64_t)) {
      std::uint64_t word;
      std::memcpy(&word, bytes.data() + at, sizeof word);
      if ((word & 0x8080808080808080) != 0) break;
    }
  }
  return at;
}

// begin takes the first byte of a character of two to four bytes. The bounds of the second byte keep out overlong forms
// (E0, F0), surrogates (ED) and what lies above U+10FFFF (F4).
bool Utf8Checker::begin(std::uint8_t lead) noexcept {
  if (lead < 0xc2 || lead > 0xf4) return false;
  pending_ = 1;
  missing_ = lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
  least_ = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  most_ = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  return true;
}

}  // namespace coir
