#pragma once

#include <coir/error.h>
#include <coir/net/detail/secret_hash.h>

#include <cstddef>
#include <expected>
#include <string_view>

// ECDSA on P-256 with SHA-256, as JSON Web Signatures have it (RFC 7518, 3.4: ES256). Only verifying. Each call takes
// the worker's stack, about 0.3 ms of x86_64 and up to 20 ms of a small board, and a few KB of account::tls meanwhile.
namespace coir::tls {

inline constexpr std::size_t kEs256SignatureBytes = 64;  // r and s

// Es256Key is a public key: the two coordinates of its point.
struct Es256Key {
  unsigned char point[64];
};

// read_es256_key reads a public key of PEM, which has a NUL behind it. Errors: invalid (no public key on P-256),
// no_memory.
[[nodiscard]] std::expected<Es256Key, Error> read_es256_key(std::string_view pem) noexcept;

// verifies_es256 tells whether `signature`, of kEs256SignatureBytes, is the key's over a text of that SHA-256. Errors:
// no_memory.
[[nodiscard]] std::expected<bool, Error> verifies_es256(const Es256Key& key, const Digest& digest,
                                                        std::string_view signature) noexcept;

}  // namespace coir::tls
