#include "http/concurrent/queues/handshake_gate.h"

namespace coir::http {

void HandshakeGate::begin(Connection& connection) noexcept {
  connection.in_handshake = true;
  ++under_way_;
}

void HandshakeGate::end(Connection& connection) noexcept {
  connection.in_handshake = false;
  --under_way_;
  if (connection.lingers) --lingering_;
  connection.lingers = false;
}

void HandshakeGate::linger(Connection& connection) noexcept {
  if (!connection.lingers) ++lingering_;
  connection.lingers = true;
}

}  // namespace coir::http
