#include <coir/format.h>

#include <string.h>

#include <coir/utf8.h>

#include "base/decimal.h"

namespace coir {

namespace {

constexpr std::string_view kDots = "...";
constexpr std::size_t kMostDigits = 20;  // of 64 bits

// write_digits writes a number before `end` and returns where it begins.
char* write_digits(char* end, std::uint64_t value, unsigned base) noexcept {
  do {
    *--end = "0123456789abcdef"[value % base];
    value /= base;
  } while (value != 0);
  return end;
}

bool is_continuation(char byte) noexcept {
  return (static_cast<unsigned char>(byte) & 0xc0) == 0x80;
}

// character_start is where the character of UTF-8 begins that the byte at `at` belongs to; in what is no UTF-8, `at`.
std::size_t character_start(const char* text, std::size_t at) noexcept {
  std::size_t start = at;
  while (start > 0 && at - start < 3 && is_continuation(text[start])) --start;
  return is_continuation(text[start]) ? at : start;
}

// The characters that JSON has a short escape for stand here, the short form's letter at the same place.
constexpr std::string_view kEscaped = "\"\\\b\f\n\r\t";
constexpr std::string_view kLetters = "\"\\bfnrt";

// shown_bytes is how many bytes the character at the start of `text` takes; 0 if it is a control character, of C1 (U+0080 to
// U+009F) too, or no UTF-8.
std::size_t shown_bytes(std::string_view text) noexcept {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return first >= 0x20 && first != 0x7f ? 1 : 0;
  const std::size_t length = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (text.size() < length || !is_utf8(text.substr(0, length))) return 0;
  return first == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0 ? 0 : length;
}

}  // namespace

void Formatter::append(const char* text, std::size_t size) noexcept {
  if (size == 0) return;
  needed_ += size;
  last_ = text[size - 1];
  if (cut_) return;
  const std::size_t room = size_ - used_;
  const std::size_t fitting = size < room ? size : room;
  if (fitting != 0) memcpy(room_ + used_, text, fitting);
  used_ += fitting;
  if (fitting < size) end_in_dots();
}

void Formatter::fill(char character, std::size_t count) noexcept {
  for (; count > 0; --count) append(&character, 1);
}

// end_in_dots cuts a full room so that a new line has its place behind the dots.
void Formatter::end_in_dots() noexcept {
  cut_ = true;
  const std::size_t kept = size_ > kDots.size() ? size_ - kDots.size() - 1 : 0;
  used_ = size_ > 0 ? character_start(room_, kept) : 0;
  const std::size_t dots = size_ - used_ < kDots.size() ? size_ - used_ : kDots.size();
  if (dots != 0) memcpy(room_ + used_, kDots.data(), dots);
  used_ += dots;
}

std::string_view Formatter::text() const noexcept {
  if (!cut_ || last_ != '\n' || used_ == size_) return {room_, used_};
  room_[used_] = '\n';
  return {room_, used_ + 1};
}

void Formatter::put(HexPart part) noexcept {
  char digits[kMostDigits];
  const char* const begin = write_digits(digits + sizeof digits, part.value, 16);
  const auto count = static_cast<std::size_t>(digits + sizeof digits - begin);
  if (count < part.width) fill('0', part.width - count);
  append(begin, count);
}

void Formatter::put(NumberPart part) noexcept {
  char digits[kMostDigits];
  const char* const begin = write_digits(digits + sizeof digits, part.magnitude, 10);
  const auto count = static_cast<std::size_t>(digits + sizeof digits - begin);
  if (part.negative) append("-", 1);
  if (const std::size_t width = count + part.negative; width < part.zeros) fill('0', part.zeros - width);
  if (part.digits == 0) return append(begin, count);
  const std::size_t whole = count > part.digits ? count - part.digits : 0;
  append(whole != 0 ? begin : "0", whole != 0 ? whole : 1);
  append(".", 1);
  if (count < part.digits) fill('0', part.digits - count);
  append(begin + whole, count - whole);
}

template <class T>
void Formatter::put_shortest(T value) noexcept {
  if (__builtin_isnan(value)) return put(std::string_view("nan"));
  if (__builtin_signbit(value)) append("-", 1);
  if (__builtin_isinf(value)) return put(std::string_view("inf"));
  if (value == T{}) return append("0", 1);
  const Decimal decimal = decimal_of(__builtin_signbit(value) ? -value : value);
  const auto count = static_cast<std::size_t>(decimal.count);
  // As ECMAScript's Number::toString chooses among the forms.
  if (decimal.point > 21 || decimal.point < -5) {
    append(decimal.digits, 1);
    if (count > 1) append(".", 1);
    append(decimal.digits + 1, count - 1);
    put(std::string_view(decimal.point > 0 ? "e+" : "e"));
    return put(decimal.point - 1);
  }
  const auto whole = static_cast<std::size_t>(decimal.point > 0 ? decimal.point : 0);
  if (count <= whole) {
    append(decimal.digits, count);
    return fill('0', whole - count);
  }
  if (whole == 0) append("0", 1);
  append(decimal.digits, whole);
  append(".", 1);
  if (decimal.point < 0) fill('0', static_cast<std::size_t>(-decimal.point));
  append(decimal.digits + whole, count - whole);
}

void Formatter::put_floating(double value) noexcept {
  put_shortest(value);
}

void Formatter::put_floating(float value) noexcept {
  put_shortest(value);
}

void Formatter::put(CutPart part) noexcept {
  if (part.text.size() <= part.most) return put(part.text);
  const std::size_t dots = part.most < kDots.size() ? part.most : kDots.size();
  append(part.text.data(), character_start(part.text.data(), part.most - dots));
  append(kDots.data(), dots);
}

// put_three_digits writes value / unit: with two digits behind the point below 10, one below 100.
void Formatter::put_three_digits(std::uint64_t value, std::uint64_t unit, const char* name) noexcept {
  const std::uint64_t whole = value / unit;
  const unsigned digits = whole >= 100 ? 0 : whole >= 10 ? 1 : 2;
  const std::uint64_t scale = digits == 0 ? 1 : digits == 1 ? 10 : 100;
  put(fixed(whole * scale + value % unit * scale / unit, digits));
  put(name);
}

void Formatter::put(ByteSizePart part) noexcept {
  constexpr const char* kUnits[] = {" B", " KB", " MB", " GB", " TB"};
  if (part.bytes < 1024) {
    put(part.bytes);
    return put(kUnits[0]);
  }
  std::size_t at = 1;
  while (at + 1 < std::size(kUnits) && part.bytes >> (10 * at) >= 1024) ++at;
  put_three_digits(part.bytes, std::uint64_t{1} << (10 * at), kUnits[at]);
}

void Formatter::put(std::chrono::nanoseconds duration) noexcept {
  const auto count = static_cast<std::uint64_t>(duration.count());
  const std::uint64_t ns = duration.count() < 0 ? 0 - count : count;
  if (duration.count() < 0) append("-", 1);
  if (ns < 1'000) {
    put(ns);
    return put(" ns");
  }
  if (ns < 1'000'000) return put_three_digits(ns, 1'000, " us");
  if (ns < 1'000'000'000) return put_three_digits(ns, 1'000'000, " ms");
  put_three_digits(ns, 1'000'000'000, " s");
}

void Formatter::put(JsonPart part) noexcept {
  append("\"", 1);
  std::string_view rest = part.text;
  while (!rest.empty()) {
    std::size_t plain = 0;
    while (plain < rest.size() && rest[plain] != '"' && rest[plain] != '\\') {
      const std::size_t bytes = shown_bytes(rest.substr(plain));
      if (bytes == 0) break;
      plain += bytes;
    }
    put(rest.substr(0, plain));
    rest.remove_prefix(plain);
    if (rest.empty()) break;
    // A character of C2 that is not shown is one of C1, whose number is its second byte.
    const bool is_c1 = rest[0] == '\xc2' && rest.size() > 1 && is_continuation(rest[1]);
    const char special = rest[is_c1 ? 1 : 0];
    rest.remove_prefix(is_c1 ? 2 : 1);
    if (const std::size_t at = kEscaped.find(special); at != kEscaped.npos) {
      add('\\', kLetters[at]);
    } else if (is_c1 || static_cast<unsigned char>(special) < 0x80) {
      add("\\u", hex(static_cast<unsigned char>(special), 4));
    } else {
      put(std::string_view("\\ufffd"));
    }
  }
  append("\"", 1);
}

void Formatter::put(EscapedPart part) noexcept {
  for (std::string_view rest = part.text; !rest.empty();) {
    std::size_t plain = 0;
    while (plain < rest.size()) {
      const std::size_t bytes = part.lines && rest[plain] == '\n' ? 1 : shown_bytes(rest.substr(plain));
      if (bytes == 0) break;
      plain += bytes;
    }
    put(rest.substr(0, plain));
    if (plain == rest.size()) return;
    // The bytes behind the first one of a character are no UTF-8 by themselves: they follow it.
    add("\\x", hex(static_cast<unsigned char>(rest[plain]), 2));
    rest.remove_prefix(plain + 1);
  }
}

}  // namespace coir
