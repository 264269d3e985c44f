#pragma once

#include <coir/config.h>
#include <mbedtls/ssl.h>

#include "net/src/tls/session.h"

namespace coir::test {

// inside is mbedTLS's own part of a session: what a peer of another make does is done through it.
struct Opened : Stream {
  static constexpr auto kSession = &Opened::session_;
};
inline mbedtls_ssl_context& inside(Stream& stream) noexcept {
  return const_cast<mbedtls_ssl_context&>((stream.*Opened::kSession)->ssl());
}

// Every profile has TLS 1.3, the small one nothing else.
inline constexpr bool kTls12 = !COIR_TLS_SMALL;

// without_tls13 is a context that was just made, for TLS 1.2 only.
inline TlsContext without_tls13(TlsContext context) noexcept {
  mbedtls_ssl_conf_max_tls_version(&context.config()->ssl, MBEDTLS_SSL_VERSION_TLS1_2);
  return context;
}

}  // namespace coir::test
