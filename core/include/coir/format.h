#pragma once

// Text in memory of the caller's, on small stacks.
//
//   const int millivolts = 3300;
//   log_line(coir::format(buffer, "sensor ", name, ": ", coir::fixed(millivolts, 3), " V\n"));

#include <coir/detail/chrono.h>
#include <coir/error.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

namespace coir {

// format builds text from parts in the caller's memory: for fibers of 8 KB, where the C library's printf does not fit,
// and for signal handlers. Nothing is allocated, nothing depends on a locale, and a line takes less than 400 bytes of
// stack, one with floating point in it less than 1.2 KB.
//
// A part is
//
//   a text          std::string_view, or const char*, of which null is written as "?"
//   char, bool      the character; true or false
//   a whole number  in decimal
//   double, float   the shortest text that reads back as the same number, as JavaScript writes it: "0.1", "21.5", "5",
//                   "1e+21"; "-0", "nan", "inf". For a number of digits write fixed() of a scaled whole number
//   a duration      "250 us", "3.21 s": three digits, the rest is cut off
//   an Error        describe(error)
//   hex(255)                "ff"        hex(255, 4)              "00ff"
//   zeros(7, 3)             "007"       fixed(-2153, 2)          "-21.53"
//   left("ab", 4)           "ab  "      right(42, 4)             "  42"
//   cut("a long name", 8)   "a lon..."  byte_size(1536)          "1.50 KB"
//   json_quoted("a\"b")     "\"a\\\"b\""   escaped("a\x1b[2J")      "a\\x1b[2J"

// A text's parts that tell how they are written; made by the functions below.
struct HexPart {
  std::uint64_t value;
  std::size_t width;
};
struct NumberPart {
  std::uint64_t magnitude;
  bool negative;
  std::uint16_t zeros;   // the least width, filled with zeros
  std::uint16_t digits;  // of these, behind the point
};
struct CutPart {
  std::string_view text;
  std::size_t most;
};
struct ByteSizePart {
  std::uint64_t bytes;
};
struct JsonPart {
  std::string_view text;
};
struct EscapedPart {
  std::string_view text;
  bool lines;
};
template <class Part>
struct AlignedPart {
  Part part;
  std::size_t width;
  bool to_right;
};

namespace detail {

// Characters and truth values are integral to C++, but no numbers.
template <class T>
concept WholeNumber =
    std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char> && !std::same_as<T, wchar_t> &&
    !std::same_as<T, char8_t> && !std::same_as<T, char16_t> && !std::same_as<T, char32_t>;

template <WholeNumber T>
constexpr NumberPart number_part(T value, std::size_t zeros, std::size_t digits) noexcept {
  const bool negative = value < T{};
  const auto bits = static_cast<std::uint64_t>(value);
  return {negative ? 0 - bits : bits, negative, static_cast<std::uint16_t>(zeros), static_cast<std::uint16_t>(digits)};
}

}  // namespace detail

// hex writes a number in hexadecimal, with at least `width` digits; a negative one as its type's two's complement.
template <detail::WholeNumber T>
constexpr HexPart hex(T value, std::size_t width = 1) noexcept {
  return {static_cast<std::make_unsigned_t<T>>(value), width};
}
// zeros writes a number with at least `width` characters, its sign included, filled with zeros.
template <detail::WholeNumber T>
constexpr NumberPart zeros(T value, std::size_t width) noexcept {
  return detail::number_part(value, width, 0);
}
// fixed writes a number that was scaled by ten to the power of `digits`: so many stand behind the point.
template <detail::WholeNumber T>
constexpr NumberPart fixed(T value, std::size_t digits) noexcept {
  return detail::number_part(value, 0, digits);
}
// left and right write any other part with spaces behind or before it, so that it takes at least `width` bytes.
template <class Part>
constexpr AlignedPart<std::decay_t<const Part&>> left(const Part& part, std::size_t width) noexcept {
  return {part, width, false};
}
template <class Part>
constexpr AlignedPart<std::decay_t<const Part&>> right(const Part& part, std::size_t width) noexcept {
  return {part, width, true};
}
// cut writes at most `most` bytes of a text; "..." stands for the rest of one that is longer. UTF-8 is cut between two
// characters.
constexpr CutPart cut(std::string_view text, std::size_t most) noexcept {
  return {text, most};
}
// byte_size writes a number of bytes with three digits, the rest cut off, in B, KB, MB, GB and TB of 1024.
constexpr ByteSizePart byte_size(std::uint64_t bytes) noexcept {
  return {bytes};
}
// json_quoted writes a text as a JSON string with its quotes (RFC 8259). Control characters become \u00NN, DEL and those of
// C1 (U+0080 to U+009F) too; bytes that are no UTF-8 become "\ufffd" each.
constexpr JsonPart json_quoted(std::string_view text) noexcept {
  return {text};
}

// escaped writes each byte of a text's control characters, of C1 (U+0080 to U+009F) too, and each byte that is no UTF-8 as
// \xNN: it stays one line, and no terminal obeys it. escaped_lines leaves the ends of lines as they are.
constexpr EscapedPart escaped(std::string_view text) noexcept {
  return {text, false};
}
constexpr EscapedPart escaped_lines(std::string_view text) noexcept {
  return {text, true};
}

// Formatter gathers a text part by part, where one call of format does not do.
//
//   Formatter out(room);
//   for (const Reading& each : readings) out.add(each.name, "=", each.value, " ");
//   if (out.fits()) show(out.text());
//
// A text that does not fit is cut, at the end of a character of UTF-8, and ends in "...", behind which a new line still
// stands if the whole text ends with one. Nothing is written beyond the room, and no NUL behind the text. For the C
// library add '\0' as the last part, and check fits().
class Formatter {
 public:
  // The room must outlive it. An empty one only counts.
  explicit constexpr Formatter(std::span<char> room) noexcept : room_(room.data()), size_(room.size()) {}

  template <class... Parts>
  Formatter& add(const Parts&... parts) noexcept {
    (put(parts), ...);
    return *this;
  }

  // text is what the room holds, valid until the next add.
  std::string_view text() const noexcept;
  // needed is the length of the whole text in bytes, of what did not fit, too.
  std::size_t needed() const noexcept { return needed_; }
  bool fits() const noexcept { return !cut_; }

 private:
  void put(std::string_view text) noexcept { append(text.data(), text.size()); }
  void put(const char* text) noexcept { put(std::string_view(text != nullptr ? text : "?")); }
  template <std::same_as<char> T>
  void put(T character) noexcept {
    append(&character, 1);
  }
  template <std::same_as<bool> T>
  void put(T truth) noexcept {
    put(std::string_view(truth ? "true" : "false"));
  }
  template <detail::WholeNumber T>
  void put(T value) noexcept {
    put(detail::number_part(value, 0, 0));
  }
  template <std::floating_point T>
  void put(T value) noexcept {
    put_floating(value);
  }
  void put(std::chrono::nanoseconds duration) noexcept;
  void put(Error error) noexcept { put(describe(error)); }
  void put(HexPart part) noexcept;
  void put(NumberPart part) noexcept;
  void put(CutPart part) noexcept;
  void put(ByteSizePart part) noexcept;
  void put(JsonPart part) noexcept;
  void put(EscapedPart part) noexcept;
  template <class Part>
  void put(const AlignedPart<Part>& aligned) noexcept {
    Formatter counted{std::span<char>()};
    counted.put(aligned.part);
    const std::size_t missing = counted.needed() < aligned.width ? aligned.width - counted.needed() : 0;
    if (aligned.to_right) fill(' ', missing);
    put(aligned.part);
    if (!aligned.to_right) fill(' ', missing);
  }

  void append(const char* text, std::size_t size) noexcept;
  void fill(char character, std::size_t count) noexcept;
  void put_floating(double value) noexcept;
  void put_floating(float value) noexcept;
  void put_floating(long double value) = delete;
  template <class T>
  void put_shortest(T value) noexcept;
  void put_three_digits(std::uint64_t value, std::uint64_t unit, const char* name) noexcept;
  void end_in_dots() noexcept;

  char* room_;
  std::size_t size_;
  std::size_t used_ = 0;
  std::size_t needed_ = 0;
  bool cut_ = false;
  char last_ = '\0';  // of the whole text
};

// format writes the parts into `room` and returns the text, cut as Formatter says. Any context, a signal handler too.
template <class... Parts>
std::string_view format(std::span<char> room, const Parts&... parts) noexcept {
  return Formatter(room).add(parts...).text();
}

// format_length is how long the text of these parts is, in bytes.
template <class... Parts>
std::size_t format_length(const Parts&... parts) noexcept {
  return Formatter(std::span<char>()).add(parts...).needed();
}

}  // namespace coir
