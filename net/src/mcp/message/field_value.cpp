#include "mcp/message/field_value.h"

#include "http/text/base64.h"

namespace coir::mcp {
namespace {

constexpr std::string_view kBegin = "=?base64?";
constexpr std::string_view kEnd = "?=";

bool is_encoded(std::string_view value) noexcept {
  return value.size() >= kBegin.size() + kEnd.size() && value.starts_with(kBegin) && value.ends_with(kEnd);
}

std::string_view encoded_part(std::string_view value) noexcept {
  return value.substr(kBegin.size(), value.size() - kBegin.size() - kEnd.size());
}

}  // namespace

std::optional<std::string_view> decode_field_value(std::string_view value, std::span<char> room) noexcept {
  if (!is_encoded(value)) return value;
  const auto decoded = http::decode_base64(encoded_part(value), room);
  if (!decoded) return std::nullopt;
  return *decoded;
}

bool field_says(std::string_view value, std::string_view wanted) noexcept {
  if (!is_encoded(value)) return value == wanted;
  std::string_view left = encoded_part(value);
  while (!left.empty()) {
    // Four digits are three bytes, so that pieces can be decoded one by one; only the last may have padding.
    constexpr std::size_t kPiece = 64;
    char bytes[kPiece / 4 * 3];
    const std::string_view piece = left.substr(0, kPiece);
    left.remove_prefix(piece.size());
    const auto decoded = http::decode_base64(piece, bytes);
    if (!decoded || !wanted.starts_with(*decoded) || (!left.empty() && decoded->size() != sizeof bytes)) return false;
    wanted.remove_prefix(decoded->size());
  }
  return wanted.empty();
}

}  // namespace coir::mcp
