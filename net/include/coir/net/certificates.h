#pragma once

// Certificates: one's own, and those that this machine trusts.
//
//   const std::string_view names[] = {"board.local", "10.0.0.7"};
//   SelfSigned made;
//   if (auto done = make_self_signed(names, made); !done) return complain(done.error());
//   auto authorities = read_system_authorities();
//   if (authorities) show(authorities->text());

#include <coir/config.h>

#if !COIR_TLS
#error "this build of coir has no TLS: configure it with -DCOIR_TLS=ON"
#endif

#include <coir/error.h>
#include <coir/file.h>

#include <cstddef>
#include <expected>
#include <span>
#include <string_view>

namespace coir {

// SelfSigned is a key and a certificate that it signed itself, both as PEM.
struct SelfSigned {
  static constexpr std::size_t kMaxBytes = 1536;
  static constexpr std::size_t kMaxNames = 16;
  char certificate[kMaxBytes];
  char key[kMaxBytes];
};

// make_self_signed (self_signed.cpp) makes a key on P-256 and a certificate for `names`, up to kMaxNames host names or
// addresses, of which the first is its subject too; it holds from 2020 to 2050, so that it serves a board whose clock
// is not set. Wipe copies of `into` after use. Costs a fraction of a second on a slow board. Fiber or thread. Errors:
// no_memory, invalid (a name is too long, or there are too many).
[[nodiscard]] std::expected<void, Error> make_self_signed(std::span<const std::string_view> names,
                                                          SelfSigned& into) noexcept;

// reissue_self_signed makes another certificate, for `names`, of the key in `pem`, which may hold more than that. All
// else is as with make_self_signed. Errors: as make_self_signed; invalid (there is no key).
[[nodiscard]] std::expected<void, Error> reissue_self_signed(std::string_view pem,
                                                             std::span<const std::string_view> names,
                                                             SelfSigned& into) noexcept;

// is_issued_for tells whether a certificate is for every one of `names`, each as it was given to make_self_signed; it
// may be for others too. Fiber or thread. Errors: no_memory, invalid (no certificate).
[[nodiscard]] std::expected<bool, Error> is_issued_for(std::string_view pem,
                                                       std::span<const std::string_view> names) noexcept;

// Each text `pem` here has a NUL behind it, and of several certificates the first one counts.
inline constexpr std::size_t kFingerprintBytes = 32 * 3;

// fingerprint writes the SHA-256 of a certificate as browsers show it: "AB:CD:...". key_fingerprint writes that of its
// key, of SubjectPublicKeyInfo in DER: all certificates that are issued for one key share it.
// Errors: no_memory, invalid (no certificate).
[[nodiscard]] std::expected<void, Error> fingerprint(std::string_view pem, char (&into)[kFingerprintBytes]) noexcept;
[[nodiscard]] std::expected<void, Error> key_fingerprint(std::string_view pem,
                                                         char (&into)[kFingerprintBytes]) noexcept;

// read_system_authorities (tls_authorities.cpp) reads the certificates that this machine trusts, as PEM for
// TlsContext::Client::authorities: from $SSL_CERT_FILE, or from where systems keep them.
//
//   auto authorities = coir::read_system_authorities();
//   if (!authorities) return complain(describe(authorities.error()));
//   auto trust = coir::TlsContext::client({.authorities = authorities->text()});
//
// Bundles have some 230 KB, charged to account::tls. Errors: not_found (there are none), limit (over 1 MiB); those of
// File::open and File::read_all.
[[nodiscard]] std::expected<FileBytes, Error> read_system_authorities() noexcept;

}  // namespace coir
