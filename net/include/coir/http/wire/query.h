#pragma once

// Queries and percent-encoding.
//
//   QueryPairs pairs("name=gr%C3%BCn&size=3");
//   while (auto pair = pairs.next()) show(pair->name, decode_form_text(pair->value, buffer).value_or(""));

#include <coir/error.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string_view>

namespace coir::http {

// decode_percent (percent.cpp) takes the percent-encoding (RFC 3986, 2.1) off `text`. The result lies in `out`, which text.size()
// bytes always suffice for; it may begin where `text` begins. Errors: invalid (a malformed escape, or %00), limit
// (`out` is too small).
[[nodiscard]] std::expected<std::string_view, Error> decode_percent(std::string_view text,
                                                                    std::span<char> out) noexcept;

// decode_form_text does the same for a name or a value of a query or a form: '+' is a space, and a '%' that begins no
// escape stands for itself, as browsers read it. Errors: invalid (a NUL, plain or encoded), limit.
[[nodiscard]] std::expected<std::string_view, Error> decode_form_text(std::string_view text,
                                                                      std::span<char> out) noexcept;

// encode_percent encodes all bytes but letters, digits and "-._~", for a segment of a path, or a name or a value of a
// query or a form. Three times text.size() bytes always suffice for `out`, which must not overlap `text`. Error: limit.
[[nodiscard]] std::expected<std::string_view, Error> encode_percent(std::string_view text,
                                                                    std::span<char> out) noexcept;

// parse_integer reads a whole decimal number, with a '-' in front at most: "12", "-3", "007". Absent for anything else,
// and for a number that does not fit.
std::optional<std::int64_t> parse_integer(std::string_view text) noexcept;

// QueryPair is one "name=value" as it was sent, to be decoded by decode_form_text. A pair without '=' has an absent
// value (data() == nullptr).
struct QueryPair {
  std::string_view name;
  std::string_view value;
};

// QueryPairs walks through "a=1&b=2": a request's query, or the content of a form. Empty pairs are skipped.
class QueryPairs {
 public:
  explicit constexpr QueryPairs(std::string_view text) noexcept : rest_(text) {}

  // next returns the next pair, absent after the last.
  std::optional<QueryPair> next() noexcept;

 private:
  std::string_view rest_;
};

// query_value decodes the value of the first pair that is called `name` into `out`; a pair without '=' has an empty
// value. Names are compared decoded. Errors: not_found, invalid (a NUL in the value), limit (`out` is too small). Each
// call walks from the start.
[[nodiscard]] std::expected<std::string_view, Error> query_value(std::string_view query, std::string_view name,
                                                                 std::span<char> out) noexcept;

// query_encoded returns the value of that pair as it was sent, present and empty without '='; absent: no such pair.
std::string_view query_encoded(std::string_view query, std::string_view name) noexcept;

}  // namespace coir::http
