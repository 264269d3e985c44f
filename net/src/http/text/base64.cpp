#include "http/text/base64.h"

#include <cstdint>

namespace coir::http {
namespace {

constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr unsigned kNoDigit = 64;

unsigned digit_value(char c) noexcept {
  if (c >= 'A' && c <= 'Z') return static_cast<unsigned>(c - 'A');
  if (c >= 'a' && c <= 'z') return static_cast<unsigned>(c - 'a') + 26;
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0') + 52;
  return c == '+' ? 62 : c == '/' ? 63 : kNoDigit;
}

}  // namespace

bool is_base64_digit(char c) noexcept {
  return digit_value(c) != kNoDigit;
}

std::string_view encode_base64(std::string_view bytes, std::span<char> out) noexcept {
  char* to = out.data();
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t here = bytes.size() - at < 3 ? bytes.size() - at : 3;
    std::uint32_t group = 0;
    for (std::size_t i = 0; i < 3; ++i) group = group << 8 | (i < here ? static_cast<std::uint8_t>(bytes[at + i]) : 0u);
    for (std::size_t i = 0; i < 4; ++i) *to++ = i <= here ? kDigits[group >> (18 - 6 * i) & 63] : '=';
  }
  return {out.data(), to};
}

std::expected<std::string_view, Error> decode_base64(std::string_view text, std::span<char> out) noexcept {
  if (text.size() % 4 != 0) return std::unexpected(ErrorCode::invalid);
  std::size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  const std::size_t size = text.size() / 4 * 3 - padding;
  if (size > out.size()) return std::unexpected(ErrorCode::limit);
  std::uint32_t bits = 0;
  std::size_t held = 0;
  std::size_t at = 0;
  for (const char c : std::string_view(text.data(), text.size() - padding)) {
    const unsigned digit = digit_value(c);
    if (digit == kNoDigit) return std::unexpected(ErrorCode::invalid);
    bits = bits << 6 | digit;
    held += 6;
    if (held >= 8) {
      held -= 8;
      out[at++] = static_cast<char>(bits >> held);
      bits &= (1u << held) - 1;
    }
  }
  if (bits != 0) return std::unexpected(ErrorCode::invalid);
  return std::string_view(out.data(), size);
}

}  // namespace coir::http
