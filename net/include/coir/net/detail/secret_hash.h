#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

// Hashes by which secrets are kept and compared, over mbedTLS. In a build with TLS only. None of them allocates, waits
// or fails; from any thread.
namespace coir {

inline constexpr std::size_t kDigestBytes = 32;
using Digest = std::array<unsigned char, kDigestBytes>;

// plain_digest is SHA-256 of the parts, one behind the other.
Digest plain_digest(std::initializer_list<std::string_view> parts) noexcept;

// keyed_digest is HMAC-SHA-256 (RFC 2104) of the parts, one behind the other. `key` is of any length.
Digest keyed_digest(std::string_view key, std::initializer_list<std::string_view> parts) noexcept;

// derive_digest is PBKDF2 with HMAC-SHA-256 (RFC 8018), for passwords: it is as slow as `iterations` (1 or more), some
// 0.6 us each on x86_64. A fiber has it run by blocking (coir/blocking.h).
Digest derive_digest(std::string_view password, std::string_view salt, std::uint32_t iterations) noexcept;

// view is the digest's bytes, for comparing by same_secret (coir/http/authorization.h).
inline std::string_view view(const Digest& digest) noexcept {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

}  // namespace coir
