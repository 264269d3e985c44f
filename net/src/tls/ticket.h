#pragma once

#include <mbedtls/ssl.h>

#include <expected>

#include "tls/config.h"

namespace coir::tls {

// Ticket is what a TlsTicket owns: mbedTLS's own record of a session, and for whom it was verified.
struct Ticket {
  // create takes a copy of what `ssl`, an established session of a client, may be resumed by. Not while an allocator pays:
  // it outlives the session. Errors: not_found, no_memory.
  static std::expected<Ticket*, Error> create(mbedtls_ssl_context& ssl, Config& config) noexcept;
  static void destroy(Ticket* ticket) noexcept;

  // offer has the handshake of `ssl` offer it, if it was given under the same policy for the same name. 0, or mbedTLS's
  // error.
  int offer(mbedtls_ssl_context& ssl, const Config& config, const char* name) const noexcept;

  Config* config;
  mbedtls_ssl_session session;
  char* name;  // behind it
};

}  // namespace coir::tls
