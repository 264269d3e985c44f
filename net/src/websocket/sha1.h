#pragma once

#include <array>
#include <string_view>

namespace coir::http {

// sha1 returns the digest of FIPS 180-4, 6.1. It is broken as a signature; the handshake of a WebSocket wants it to
// show that the server has read the key, for which it still serves. Its own because a build without TLS has no other.
// About 250 bytes of stack.
std::array<char, 20> sha1(std::string_view bytes) noexcept;

}  // namespace coir::http
