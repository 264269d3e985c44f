#pragma once

#include <coir/error.h>

#include <expected>
#include <span>
#include <string_view>

namespace coir {

// SelfSigned is a key and a certificate that it signed itself, both as PEM.
struct SelfSigned {
  static constexpr std::size_t kMaxBytes = 1536;
  char certificate[kMaxBytes];
  char key[kMaxBytes];
};

// make_self_signed makes a key on P-256 and a certificate for `names`, host names or addresses, of which the first is
// its subject too; it holds from 2020 to 2050, so that it serves a board whose clock is not set. Whoever copies `into`
// wipes it. Costs a fraction of a second on a slow board. Fiber or thread. Errors: no_memory, invalid (a name is too
// long).
[[nodiscard]] std::expected<void, Error> make_self_signed(std::span<const std::string_view> names,
                                                          SelfSigned& into) noexcept;

// fingerprint writes the SHA-256 of a certificate in PEM, of the first if there are several, as browsers show it, given
// with a NUL behind it: "AB:CD:...". Error: invalid.
inline constexpr std::size_t kFingerprintBytes = 32 * 3;
[[nodiscard]] std::expected<void, Error> fingerprint(std::string_view pem, char (&into)[kFingerprintBytes]) noexcept;

}  // namespace coir
