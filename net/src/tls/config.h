#pragma once

#include <coir/atomic.h>
#include <coir/tls.h>
#include <mbedtls/pk.h>
#include <mbedtls/ssl.h>
#include <mbedtls/ssl_ticket.h>
#include <mbedtls/x509_crt.h>

#include <cstddef>
#include <cstdint>

namespace coir::tls {

// Identity is a certificate with its chain and key.
struct Identity {
  mbedtls_x509_crt chain;
  mbedtls_pk_context key;
};

// Config is what a TlsContext is a handle of; context.cpp makes it. Nothing of it changes once it is complete, but the
// tickets' keys, which mbedTLS guards itself.
struct Config {
  Atomic<std::uint32_t> holders{1};
  mbedtls_ssl_config ssl;
  mbedtls_ssl_ticket_context tickets;
  mbedtls_x509_crt authorities;
  Identity identities[TlsContext::kMaxCertificates];
  std::size_t identity_count = 0;
  bool remembers_peers = false;
  bool trusts_pins_alone = false;  // whoever the certificate is of and for
  std::uint8_t pin_count = 0;
  TlsKeyPin pins[TlsContext::kMaxPins];
  const char* protocols[TlsContext::kMaxProtocols + 1] = {};

  // create returns a Config with empty parts, or null. release drops one handle.
  static Config* create() noexcept;
  static void release(Config* config) noexcept;
  void hold() noexcept { holders.fetch_add(1, std::memory_order_relaxed); }
};

// names, in names.cpp, tells whether a certificate is for a host name: by its subject alternative names, with a
// wildcard for the first label.
bool names(const mbedtls_x509_crt& certificate, const char* host, std::size_t length) noexcept;

}  // namespace coir::tls
