#include "websocket/accept.h"

#include <cstring>

#include "http/text/base64.h"
#include "websocket/sha1.h"

namespace coir::http {
namespace {

constexpr std::string_view kGuid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

}  // namespace

bool is_websocket_key(std::string_view text) noexcept {
  if (text.size() != kWebSocketKey || text[22] != '=' || text[23] != '=') return false;
  for (std::size_t at = 0; at < 22; ++at) {
    if (!is_base64_digit(text[at])) return false;
  }
  return true;
}

std::array<char, kWebSocketKey> websocket_key(std::span<const char, 16> random) noexcept {
  std::array<char, kWebSocketKey> key;
  encode_base64({random.data(), random.size()}, key);
  return key;
}

std::array<char, kWebSocketAccept> websocket_accept(std::string_view key) noexcept {
  char joined[kWebSocketKey + kGuid.size()];
  std::memcpy(joined, key.data(), kWebSocketKey);
  std::memcpy(joined + kWebSocketKey, kGuid.data(), kGuid.size());
  const std::array<char, 20> digest = sha1({joined, sizeof joined});
  std::array<char, kWebSocketAccept> accept;
  encode_base64({digest.data(), digest.size()}, accept);
  return accept;
}

}  // namespace coir::http
