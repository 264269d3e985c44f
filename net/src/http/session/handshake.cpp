#include <coir/tls.h>

#include "http/session/session.h"

#include "http/connection/connection.h"
#include "http/connection/shed.h"
#include "http/session/engine.h"

namespace coir::http {

// begin_handshake makes the TLS session. If there are too many handshakes, it closes one whose client is silent.
// False: there is no memory.
bool Session::begin_handshake() noexcept {
  const Deadline deadline = Deadline::after(engine_.options.handshake_timeout);
  for (;;) {
    const auto begun = connection_->stream.begin_tls(connection_->tls->current(), nullptr, deadline);
    if (begun) return true;
    if (begun.error() != ErrorCode::limit || !engine_.close_silent_handshake()) return false;
  }
}

// advance_handshake goes on with the TLS handshake of a new connection. While the client owes bytes the connection
// rests, as between two requests, and holds no session of HTTP: a client that stalls has memory of the handshakes only,
// which has a ceiling of its own, and is closed when the handshake has taken too long. The same holds while a client is
// told why its handshake has failed.
Session::After Session::advance_handshake() noexcept {
  Stream& stream = connection_->stream;
  if (!stream.secure() && !begin_handshake()) {
    engine_.counters.refused.fetch_add(1, std::memory_order_relaxed);
    shed(stream, true);
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
