#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

// The two keys of a WebSocket's handshake (RFC 6455, 4.1 and 4.2.2): the client's, 16 random bytes, and what the server
// makes of it.
namespace coir::http {

inline constexpr std::size_t kWebSocketKey = 24;
inline constexpr std::size_t kWebSocketAccept = 28;

// is_websocket_key tells whether `text` is a value of Sec-WebSocket-Key: the base64 of 16 bytes.
bool is_websocket_key(std::string_view text) noexcept;

// websocket_key is the key made of `random`.
std::array<char, kWebSocketKey> websocket_key(std::span<const char, 16> random) noexcept;

// websocket_accept is the value of Sec-WebSocket-Accept that answers `key`, of which kWebSocketKey bytes count.
std::array<char, kWebSocketAccept> websocket_accept(std::string_view key) noexcept;

}  // namespace coir::http
