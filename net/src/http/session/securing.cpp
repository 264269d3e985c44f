#include <coir/net/tls.h>

#include "http/session/connection.h"
#include "http/session/engine.h"
#include "http/session/no_room.h"
#include "http/session/session.h"

namespace coir::http {

// begin_handshake makes its session, in the place of one whose client is silent where there are too many. False: there
// is no memory for it.
bool Session::begin_handshake() noexcept {
  const Deadline deadline = Deadline::after(engine_.options.handshake_timeout);
  for (;;) {
    const auto begun = connection_->stream.begin_tls(connection_->tls->current(), nullptr, deadline);
    if (begun) return true;
    if (begun.error() != ErrorCode::limit || !engine_.end_silent_handshake()) return false;
  }
}

// shake_hands goes on with the TLS handshake of a new connection. While the client owes bytes the connection is asleep,
// as one between two requests is, and holds no session: clients that stall have the handshakes' memory only, which has
// a ceiling of its own, and are closed when the handshake has taken too long. So it is while a client is told why its
// handshake has failed.
Session::After Session::shake_hands() noexcept {
  Stream& stream = connection_->stream;
  if (!stream.secure() && !begin_handshake()) {
    engine_.counters.refused.fetch_add(1, std::memory_order_relaxed);
    refuse_for_want_of_room(stream, true);
    return After::close;
  }
  for (;;) {
    const auto over = stream.advance_handshake();
    if (!over) return After::close;
    if (*over) break;
    if (stream.has_told_fault() && !engine_.may_linger(*connection_)) return After::close;
    if (stream.awaited() == Direction::readable) return After::rest;
    // A flight is smaller than a socket's buffer, so that this is rare.
    if (!wait(stream.fd(), Direction::writable, stream.handshake_deadline())) return After::close;
    stream.mark_ready(Direction::writable);
  }
  connection_->tls = nullptr;
  engine_.end_handshake(*connection_);
  return After::go_on;
}

}  // namespace coir::http
