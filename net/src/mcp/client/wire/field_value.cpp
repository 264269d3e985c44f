#include "mcp/client/wire/field_value.h"

#include <algorithm>
#include <cstring>

#include "http/text/base64.h"

namespace coir::mcp::detail {

namespace {
constexpr std::string_view kBefore = "=?base64?";
constexpr std::string_view kBehind = "?=";
}  // namespace

bool is_plain_value(std::string_view text) noexcept {
  if (text.empty()) return true;
  if (text.front() == ' ' || text.back() == ' ') return false;
  if (text.starts_with(kBefore) && text.ends_with(kBehind)) return false;
  return std::ranges::all_of(text, [](char c) { return c >= 0x20 && c < 0x7f; });
}

std::string_view encode_value(std::string_view text, std::span<char> room) noexcept {
  if (text.size() > room.size()) return {};
  const std::size_t digits = http::base64_bytes(text.size());
  const std::size_t bytes = kBefore.size() + digits + kBehind.size();
  if (bytes > room.size()) return {};
  std::memcpy(room.data(), kBefore.data(), kBefore.size());
  http::encode_base64(text, room.subspan(kBefore.size(), digits));
  std::memcpy(room.data() + kBefore.size() + digits, kBehind.data(), kBehind.size());
  return {room.data(), bytes};
}

}  // namespace coir::mcp::detail
