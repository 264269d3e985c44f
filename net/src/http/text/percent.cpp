#include <coir/http/wire/query.h>

#include "http/text/characters.h"

namespace coir::http {
namespace {

// decode writes what `take` takes off `text`, byte by byte, until `text` is empty.
template <class Take>
std::expected<std::string_view, Error> decode(std::string_view text, std::span<char> out, Take take) noexcept {
  std::size_t size = 0;
  while (!text.empty()) {
    const int byte = take(text);
    if (byte <= 0) return std::unexpected(Error{ErrorCode::invalid});
    if (size == out.size()) return std::unexpected(Error{ErrorCode::limit});
    out[size++] = static_cast<char>(byte);
  }
  return std::string_view(out.data(), size);
}

constexpr bool is_unreserved(char c) noexcept {
  return c == '-' || c == '.' || c == '_' || c == '~' || is_digit(c) || (c >= 'a' && c <= 'z') ||
         (c >= 'A' && c <= 'Z');
}

}  // namespace

std::expected<std::string_view, Error> decode_percent(std::string_view text, std::span<char> out) noexcept {
  return decode(text, out, take_decoded);
}

std::expected<std::string_view, Error> decode_form_text(std::string_view text, std::span<char> out) noexcept {
  return decode(text, out, take_form_decoded);
}

std::expected<std::string_view, Error> encode_percent(std::string_view text, std::span<char> out) noexcept {
  std::size_t size = 0;
  for (const char c : text) {
    const std::size_t wanted = is_unreserved(c) ? 1 : 3;
    if (out.size() - size < wanted) return std::unexpected(Error{ErrorCode::limit});
    if (wanted == 1) {
      out[size++] = c;
      continue;
    }
    constexpr std::string_view digits = "0123456789ABCDEF";
    const auto byte = static_cast<unsigned char>(c);
    out[size++] = '%';
    out[size++] = digits[byte >> 4];
    out[size++] = digits[byte & 15];
  }
  return std::string_view(out.data(), size);
}

std::optional<std::int64_t> parse_integer(std::string_view text) noexcept {
  const bool negative = !text.empty() && text[0] == '-';
  if (negative) text.remove_prefix(1);
  if (text.empty()) return {};
  // Counted downwards: there is one negative number more.
  std::int64_t number = 0;
  for (const char c : text) {
    if (!is_digit(c) || number < INT64_MIN / 10) return {};
    number *= 10;
    const std::int64_t digit = c - '0';
    if (number < INT64_MIN + digit) return {};
    number -= digit;
  }
  if (!negative && number == INT64_MIN) return {};
  return negative ? number : -number;
}

}  // namespace coir::http
