#pragma once

#include <cstddef>
#include <expected>
#include <span>
#include <string_view>

#include <coir/error.h>

// Base64 with the alphabet of RFC 4648, 4, padded.
namespace coir::http {

// base64_bytes is how long the text for `bytes` bytes is.
constexpr std::size_t base64_bytes(std::size_t bytes) noexcept {
  return (bytes + 2) / 3 * 4;
}

// is_base64_digit tells whether `c` is one of the 64 characters; '=' is none of them.
bool is_base64_digit(char c) noexcept;

// encode_base64 writes the text for `bytes` into `out`, which has base64_bytes(bytes.size()) bytes, and returns it.
std::string_view encode_base64(std::string_view bytes, std::span<char> out) noexcept;

// decode_base64 writes the bytes that `text` stands for into `out` and returns them. Each sequence of bytes has one
// text: white space, missing padding, and bits set behind the last byte are refused. Errors: invalid, limit (`out` is
// too small).
std::expected<std::string_view, Error> decode_base64(std::string_view text, std::span<char> out) noexcept;

}  // namespace coir::http
