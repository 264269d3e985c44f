#pragma once

// Text that arrives in pieces is checked to be UTF-8.
//
//   Utf8Checker checker;
//   for (std::string_view piece : {"gr\xc3", "\xbc" "n"}) {
//     if (!checker.feed(piece)) return complain("this is no UTF-8");
//   }
//   if (!checker.complete()) return complain("the text ends inside a character");

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace coir {

// is_utf8 tells whether `bytes` are well-formed UTF-8 (Unicode, table 3-7): neither overlong forms nor surrogates,
// nothing above U+10FFFF, no character cut off at the end. Empty text is well-formed. From any context. Cost: ASCII
// goes by words of eight bytes, the rest byte by byte.
[[nodiscard]] bool is_utf8(std::string_view bytes) noexcept;

// Utf8Checker checks text that arrives in pieces, cut anywhere.
//
// Four bytes of state, a value; no allocation. From any context.
class Utf8Checker {
 public:
  // feed tells whether the text is well-formed as far as it goes, a character cut off at the end of `bytes` included.
  // After false its answers mean nothing until reset.
  [[nodiscard]] bool feed(std::string_view bytes) noexcept { return accept(bytes) == bytes.size(); }

  // accept returns how many bytes at the front of `bytes` go on well-formed text: bytes.size(), or the place of the
  // first byte that cannot stand there. That byte is not taken: whoever mends text replaces the pending() bytes before
  // it, if there are any, else the byte itself, resets, and goes on.
  [[nodiscard]] std::size_t accept(std::string_view bytes) noexcept;

  // pending is how many bytes of an unfinished character were taken, 0 to 3.
  std::size_t pending() const noexcept { return pending_; }

  // complete tells whether the text may end here: no character is unfinished.
  bool complete() const noexcept { return pending_ == 0; }

  // reset forgets an unfinished character.
  void reset() noexcept { *this = Utf8Checker(); }

 private:
  bool begin(std::uint8_t lead) noexcept;

  std::uint8_t pending_ = 0;  // bytes taken of the character at hand
  std::uint8_t missing_ = 0;  // bytes that it still lacks
  std::uint8_t least_ = 0;    // the next of them is at least this
  std::uint8_t most_ = 0;     // and at most this
};

}  // namespace coir
