#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace coir::http {

// base64_size is how many characters encode_base64 writes for as many bytes.
constexpr std::size_t base64_size(std::size_t bytes) noexcept {
  return (bytes + 2) / 3 * 4;
}

// encode_base64 writes `bytes` to `out` by RFC 4648, 4, padded, and returns what it wrote. Absent: `out` is too small.
std::optional<std::string_view> encode_base64(std::string_view bytes, std::span<char> out) noexcept;

// decode_base64 takes it off again. Absent: `text` is not what encode_base64 writes (white space, padding that lacks,
// bits set behind the last byte), or `out` is too small; three bytes for each four characters suffice.
std::optional<std::string_view> decode_base64(std::string_view text, std::span<char> out) noexcept;

}  // namespace coir::http
