#pragma once

#include <coir/config.h>

#if !COIR_TLS
#error "this build of coir has no TLS: configure it with -DCOIR_TLS=ON"
#endif

#include <coir/error.h>
#include <coir/file.h>

#include <expected>

namespace coir {

// read_system_authorities reads the certificates that this machine trusts, as PEM for TlsContext::Client::authorities:
// from $SSL_CERT_FILE, or from where systems keep them.
//
//   auto authorities = coir::read_system_authorities();
//   if (!authorities) return complain(describe(authorities.error()));
//   auto trust = coir::TlsContext::client({.authorities = authorities->text()});
//
// Bundles have some 230 KB, charged to account::tls. Errors: not_found (there are none), limit (over 1 MiB); those of
// File::open and File::read_all.
[[nodiscard]] std::expected<FileBytes, Error> read_system_authorities() noexcept;

}  // namespace coir
