#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

// Classes of characters (RFC 9110, 5.6; RFC 3986, 2 and 3) as one table of bits, and comparison without case.
namespace coir::http {

enum CharacterClass : std::uint8_t {
  kToken = 1,       // tchar
  kTargetStop = 2,  // ends or spoils a run of plain target characters: '?', '%', '#', and all that is not visible ASCII
  kHostName = 4,    // unreserved and sub-delims but ',': a reg-name without percent-encoding
  kHex = 8,         // HEXDIG
  kFieldControl = 16  // what no field value may hold: controls but HTAB
};

inline constexpr std::array<std::uint8_t, 256> kClasses = [] {
  std::array<std::uint8_t, 256> classes{};
  const auto mark = [&](std::string_view characters, std::uint8_t bit) {
    for (const char c : characters) classes[static_cast<unsigned char>(c)] |= bit;
  };
  constexpr std::string_view alphanumeric = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  mark(alphanumeric, kToken | kHostName);
  mark("!#$%&'*+-.^_`|~", kToken);
  mark("-._~!$&'()*+;=", kHostName);
  mark("0123456789abcdefABCDEF", kHex);
  mark("?%#", kTargetStop);
  for (unsigned c = 0; c < 256; ++c) {
    if (c <= 0x20 || c >= 0x7f) classes[c] |= kTargetStop;
    if ((c < 0x20 && c != '\t') || c == 0x7f) classes[c] |= kFieldControl;
  }
  return classes;
}();

constexpr bool is(char c, std::uint8_t classes) noexcept {
  return (kClasses[static_cast<unsigned char>(c)] & classes) != 0;
}

constexpr bool is_digit(char c) noexcept {
  return c >= '0' && c <= '9';
}

constexpr bool is_token(std::string_view text) noexcept {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return is(c, kToken); });
}

// hex_value returns the value of a HEXDIG, -1 for anything else.
constexpr int hex_value(char c) noexcept {
  if (is_digit(c)) return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// escaped_byte returns the byte that the percent-encoding at the start of `text` stands for, -1 when none is there.
constexpr int escaped_byte(std::string_view text) noexcept {
  if (text.size() < 3 || text[0] != '%') return -1;
  const int high = hex_value(text[1]);
  const int low = hex_value(text[2]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

// take_decoded takes the first byte of `text`, which is not empty, away and returns it decoded, -1 for a malformed
// escape.
constexpr int take_decoded(std::string_view& text) noexcept {
  const int byte = text[0] == '%' ? escaped_byte(text) : static_cast<unsigned char>(text[0]);
  if (byte >= 0) text.remove_prefix(text[0] == '%' ? 3 : 1);
  return byte;
}

// take_form_decoded does it for forms: '+' is a space, and a '%' that begins no escape is itself.
constexpr int take_form_decoded(std::string_view& text) noexcept {
  const char c = text[0];
  const int byte = c == '%' ? take_decoded(text) : -1;
  if (byte >= 0) return byte;
  text.remove_prefix(1);
  return c == '+' ? ' ' : static_cast<unsigned char>(c);
}

constexpr bool is_space(char c) noexcept {
  return c == ' ' || c == '\t';
}

// first, after and begins_with cut and compare a view at places that are known to lie inside it; string_view's own
// members check the place again and bring the report of a failure with them.
constexpr std::string_view first(std::string_view text, std::size_t size) noexcept {
  return {text.data(), size};
}
constexpr std::string_view after(std::string_view text, std::size_t place) noexcept {
  return {text.data() + place, text.size() - place};
}

constexpr bool begins_with(std::string_view text, std::string_view prefix) noexcept {
  return text.size() >= prefix.size() && first(text, prefix.size()) == prefix;
}

// same_ignoring_case is for texts of one length.
bool same_ignoring_case(std::string_view a, std::string_view b) noexcept;
inline bool equals_ignoring_case(std::string_view a, std::string_view b) noexcept {
  return a.size() == b.size() && same_ignoring_case(a, b);
}
inline bool begins_ignoring_case(std::string_view text, std::string_view prefix) noexcept {
  return text.size() >= prefix.size() && equals_ignoring_case(first(text, prefix.size()), prefix);
}

// until returns what stands before the first `end`, or all of it.
constexpr std::string_view until(std::string_view text, char end) noexcept {
  return first(text, std::min(text.find(end), text.size()));
}

// trim takes optional white space off both ends.
constexpr std::string_view trim(std::string_view text) noexcept {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

// same_name compares a field name, known to be a token of N - 1 characters, with a lower-case literal of letters and
// '-'. Setting bit 5 lowers letters and leaves '-' alone, and no token character but a letter becomes one by it; so
// words of eight bytes can be compared at a time.
template <std::size_t N>
bool same_name(const char* name, const char (&literal)[N]) noexcept {
  constexpr std::size_t size = N - 1;
  constexpr std::uint64_t bit = 0x2020202020202020;
  const auto differs = [&]<typename Word>(std::size_t at, Word) {
    Word a;
    Word b;
    std::memcpy(&a, name + at, sizeof a);
    std::memcpy(&b, literal + at, sizeof b);
    return static_cast<Word>(a | static_cast<Word>(bit)) != b;
  };
  if constexpr (size >= 8) {
    for (std::size_t at = 0; at + 8 <= size; at += 8) {
      if (differs(at, std::uint64_t{})) return false;
    }
    return !differs(size - 8, std::uint64_t{});
  } else {
    static_assert(size >= 4);
    return !differs(0, std::uint32_t{}) && !differs(size - 4, std::uint32_t{});
  }
}

}  // namespace coir::http
