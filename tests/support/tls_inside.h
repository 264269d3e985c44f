#pragma once

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
#if defined(COIR_TLS_SMALL)
inline constexpr bool kTls12 = false;
#else
inline constexpr bool kTls12 = true;
#endif

// without_tls13 is a context that was just made, for TLS 1.2 only.
inline TlsContext without_tls13(TlsContext context) noexcept {
  mbedtls_ssl_conf_max_tls_version(&context.config()->ssl, MBEDTLS_SSL_VERSION_TLS1_2);
  return context;
}

// with_tickets is a client's context that was just made, whose sessions take the tickets of TLS 1.3.
inline TlsContext with_tickets(TlsContext context) noexcept {
  mbedtls_ssl_conf_tls13_enable_signal_new_session_tickets(&context.config()->ssl, 1);
  return context;
}

// SavedSession is what a client keeps to resume a session later.
class SavedSession {
 public:
  SavedSession() noexcept { mbedtls_ssl_session_init(&session_); }
  ~SavedSession() { mbedtls_ssl_session_free(&session_); }
  SavedSession(const SavedSession&) = delete;
  SavedSession& operator=(const SavedSession&) = delete;

  // save is for after an answer: by TLS 1.3 the ticket comes behind the handshake. resume is for between begin_tls and
  // handshake.
  bool save(Stream& stream) noexcept { return mbedtls_ssl_get_session(&inside(stream), &session_) == 0; }
  bool resume(Stream& stream) noexcept {
    const std::size_t before = account::tls.used();
    const bool done = mbedtls_ssl_set_session(&inside(stream), &session_) == 0;
    // The copy is the stream's from here on, which frees it as its own.
    account::tls.refund(account::tls.used() - before);
    return done;
  }

 private:
  mbedtls_ssl_session session_;
};

}  // namespace coir::test
