#include <coir/http/wire/representation.h>
#include <coir/http/wire/request.h>
#include <coir/http/wire/response.h>

#include <algorithm>
#include <cstring>

#include "http/text/characters.h"

namespace coir::http {
namespace {

// take_position reads digits from the start of `text`, as many as there are; a number too great stays at the greatest.
std::uint64_t take_position(std::string_view& text) noexcept {
  std::uint64_t number = 0;
  while (!text.empty() && is_digit(text[0])) {
    const auto digit = static_cast<std::uint64_t>(text[0] - '0');
    number = number > (UINT64_MAX - digit) / 10 ? UINT64_MAX : number * 10 + digit;
    text.remove_prefix(1);
  }
  return number;
}

Range part(std::uint64_t first, std::uint64_t last) noexcept {
  return {Range::Kind::part, first, last};
}

// parse_suffix reads the length of "-500". An empty representation has no part, but a suffix
// of it is no error (RFC 9110, 14.1.2): it is served whole.
Range parse_suffix(std::string_view spec, std::uint64_t size) noexcept {
  spec.remove_prefix(1);
  if (spec.empty()) return {};
  const std::uint64_t length = take_position(spec);
  if (!spec.empty()) return {};
  if (length == 0) return {.kind = Range::Kind::unsatisfiable};
  if (size == 0) return {};
  return part(size - std::min(length, size), size - 1);
}

}  // namespace

Range parse_range(std::string_view value, std::uint64_t size) noexcept {
  constexpr std::string_view unit = "bytes=";
  if (value.size() <= unit.size() || !equals_ignoring_case(first(value, unit.size()), unit)) return {};
  std::string_view spec = trim(after(value, unit.size()));
  if (spec.empty()) return {};
  if (spec[0] == '-') return parse_suffix(spec, size);
  if (!is_digit(spec[0])) return {};
  const std::uint64_t first = take_position(spec);
  if (spec.empty() || spec[0] != '-') return {};
  spec.remove_prefix(1);
  std::uint64_t last = UINT64_MAX;
  if (!spec.empty()) {
    last = take_position(spec);
    if (!spec.empty() || last < first) return {};
  }
  if (first >= size) return {.kind = Range::Kind::unsatisfiable};
  return part(first, std::min(last, size - 1));
}

std::string_view write_content_range(const Range& range, std::uint64_t size,
                                     std::span<char, kContentRangeBytes> out) noexcept {
  constexpr std::string_view unit = "bytes ";
  char* at = out.data();
  std::memcpy(at, unit.data(), unit.size());
  at += unit.size();
  if (range.kind == Range::Kind::part) {
    at = write_decimal(at, range.first);
    *at++ = '-';
    at = write_decimal(at, range.last);
  } else {
    *at++ = '*';
  }
  *at++ = '/';
  at = write_decimal(at, size);
  return {out.data(), at};
}

}  // namespace coir::http
