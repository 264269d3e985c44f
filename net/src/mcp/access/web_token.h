#pragma once

#include <coir/error.h>
#include <coir/net/detail/secret_hash.h>

#include <cstddef>
#include <expected>
#include <span>
#include <string_view>

namespace coir::mcp {

inline constexpr std::size_t kMostToken = 4096;

// WebToken is a JSON Web Token in its compact form (RFC 7515, 7.1), taken apart. `claims` and `signed_part` lie in the token, and
// nothing of what they say is known to be true.
struct WebToken {
  std::string_view claims;       // as base64url
  std::string_view signed_part;  // what the signature is of
  char signature[64] = {};       // of ES256
};

// read_web_token takes a token apart and checks its header: `alg` is ES256, `typ` is a token's or missing, and there is
// no `crit`.
// Errors: invalid, no_memory.
[[nodiscard]] std::expected<WebToken, Error> read_web_token(std::string_view token) noexcept;

// decode_base64url decodes base64 with the alphabet for URLs, without padding (RFC 4648, 5), into `out`, of text.size()
// + 3 bytes. As with decode_base64 each sequence of bytes has one text. Errors: invalid, limit.
[[nodiscard]] std::expected<std::string_view, Error> decode_base64url(std::string_view text,
                                                                      std::span<char> out) noexcept;

}  // namespace coir::mcp
