#pragma once

#include <coir/error.h>

#include <cstddef>
#include <expected>
#include <optional>
#include <span>
#include <string_view>

namespace coir::http {

// QueryPair is one "name=value" as it was sent, to be decoded by decode_form_text. A pair without '=' has an absent
// value (data() == nullptr).
struct QueryPair {
  std::string_view name;
  std::string_view value;
};

// QueryPairs walks through "a=1&b=2": a request's query, or the content of a form. Empty pairs are skipped.
//
//   QueryPairs pairs(exchange.request().query);
//   while (auto pair = pairs.next()) ...
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
