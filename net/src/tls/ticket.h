#pragma once

#include <mbedtls/ssl.h>

#include <expected>

#include "tls/config.h"

namespace coir::tls {

// Ticket is owned by a TlsTicket: mbedTLS's record of a session, and the name for which it was verified.
struct Ticket {
  // create copies the resumption data of `ssl`, an established session of a client. Do not call it while an allocator
  // pays: the ticket outlives the session. Errors: not_found, no_memory.
  static std::expected<Ticket*, Error> create(mbedtls_ssl_context& ssl, Config& config) noexcept;
  static void destroy(Ticket* ticket) noexcept;

  // offer makes the handshake of `ssl` offer the ticket, if it was given under the same policy for the same name. 0, or
  // mbedTLS's error.
  int offer(mbedtls_ssl_context& ssl, const Config& config, const char* name) const noexcept;

  Config* config;
  mbedtls_ssl_session session;
  char* name;  // behind it
};

}  // namespace coir::tls
