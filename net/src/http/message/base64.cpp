#include "http/message/base64.h"

#include <cstdint>

#include "http/message/characters.h"

namespace coir::http {
namespace {

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr int base64_value(char c) noexcept {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (is_digit(c)) return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

}  // namespace

std::optional<std::string_view> encode_base64(std::string_view bytes, std::span<char> out) noexcept {
  if (out.size() < base64_size(bytes.size())) return {};
  std::size_t size = 0;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t here = std::min<std::size_t>(bytes.size() - at, 3);
    std::uint32_t word = 0;
    for (std::size_t i = 0; i < 3; ++i) word = word << 8 | (i < here ? static_cast<unsigned char>(bytes[at + i]) : 0u);
    for (std::size_t i = 0; i < 4; ++i) out[size++] = i <= here ? kDigits[word >> (18 - 6 * i) & 63] : '=';
  }
  return std::string_view(out.data(), size);
}

std::optional<std::string_view> decode_base64(std::string_view text, std::span<char> out) noexcept {
  if (text.size() % 4 != 0) return {};
  std::size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  const std::size_t size = text.size() / 4 * 3 - padding;
  if (out.size() < size) return {};
  std::uint32_t bits = 0;
  unsigned held = 0;
  std::size_t written = 0;
  for (const char c : first(text, text.size() - padding)) {
    const int value = base64_value(c);
    if (value < 0) return {};
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    held += 6;
    if (held >= 8) out[written++] = static_cast<char>(bits >> (held -= 8));
  }
  if ((bits & ((1u << held) - 1)) != 0) return {};
  return std::string_view(out.data(), size);
}

}  // namespace coir::http
