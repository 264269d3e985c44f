#pragma once

#include <coir/error.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string_view>

namespace coir::mcp {

// StateBinding is what a state that went through a client is bound to: what comes back with another is not taken.
struct StateBinding {
  std::string_view key;        // the server's secret
  std::string_view principal;  // who was given it
  std::string_view method;     // for which request
  std::string_view name;
  std::string_view arguments;  // as JSON
};

inline constexpr std::size_t kStateOverhead = 8 + 32;  // when it expires; the digest

// sealed_bytes is how long the text for a state is.
constexpr std::size_t sealed_bytes(std::size_t state_bytes) noexcept {
  return (kStateOverhead + state_bytes + 2) / 3 * 4;
}

// seal_state writes the text for `state` into `out`, of sealed_bytes(state.size()); `room` is for as many bytes as out
// has. It is authenticated by HMAC-SHA-256 and not hidden. Errors: unsupported (a build without TLS has no digest).
std::expected<std::string_view, Error> seal_state(const StateBinding& binding, std::string_view state,
                                                  std::int64_t expires_s, std::span<char> room,
                                                  std::span<char> out) noexcept;

// open_state returns the state of a text, which lies in `room`, of text.size() bytes at least. Errors: invalid (forged,
// cut, or bound to something else), timed_out (expired), limit (the room), unsupported.
std::expected<std::string_view, Error> open_state(const StateBinding& binding, std::string_view text,
                                                  std::int64_t now_s, std::span<char> room) noexcept;

}  // namespace coir::mcp
