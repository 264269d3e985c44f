#include "connection.h"
#include "engine.h"
#include "no_room.h"
#include "session.h"

#if defined(COIR_TLS) && COIR_TLS
#include <coir/net/tls.h>
#endif

namespace coir::http {

// shake_hands brings about the TLS session of a new connection. While the client owes bytes it may be turned away like
// one that owes the rest of a head. False: there is none.
bool Session::shake_hands() noexcept {
  const bool done = try_handshake();
  engine_.end_handshake();
  return done;
}

bool Session::try_handshake() noexcept {
#if defined(COIR_TLS) && COIR_TLS
  Stream& stream = connection_->stream;
  const Deadline deadline = Deadline::after(engine_.options.handshake_timeout);
  if (!stream.begin_tls(connection_->tls->current(), nullptr)) {
    engine_.counters.refused.fetch_add(1, std::memory_order_relaxed);
    refuse_for_want_of_room(stream, true);
    return false;
  }
  for (;;) {
    const auto done = stream.handshake(Deadline::now());
    if (done) break;
    if (done.error() != ErrorCode::timed_out) return false;
    engine_.begin_reading(*connection_, deadline);
    const auto ready = wait(stream.fd(), stream.awaited(), deadline);
    if (!engine_.end_reading(*connection_) || !ready) return false;
    stream.mark_ready(stream.awaited());
  }
  connection_->tls = nullptr;
#endif
  return true;
}

}  // namespace coir::http
