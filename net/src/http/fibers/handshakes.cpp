// Whose TLS handshake may begin, and whose has taken too long.
#include "http/fibers/fiber_engine.h"

namespace coir::http {

// The next two need the lock.

Connection* FiberEngine::next_waiting() const noexcept {
  Connection* const established = waiting_.front();
  Connection* const hello = handshakes_ < options.max_handshakes ? hellos_.front() : nullptr;
  if (established == nullptr) return hello;
  return hello != nullptr && hello->since_ns < established->since_ns ? hello : established;
}

void FiberEngine::take_out(Connection& connection) noexcept {
  const bool begins = connection.tls != nullptr && !connection.shakes_hands;
  (begins ? hellos_ : waiting_).remove(connection);
  if (!begins) return;
  connection.shakes_hands = true;
  ++handshakes_;
}

void FiberEngine::end_handshake(Connection& connection) noexcept {
  // Only who has the connection writes it.
  if (!connection.shakes_hands) return;
  bool wanted;
  {
    Locked locked(lock_);
    connection.shakes_hands = false;
    --handshakes_;
    if (connection.lingers) --lingering_;
    connection.lingers = false;
    wanted = want_standby();
  }
  if (wanted) spawn_standby();
}

bool FiberEngine::may_linger(Connection& connection) noexcept {
  Locked locked(lock_);
  if (!connection.lingers) ++lingering_;
  connection.lingers = true;
  return !handshakes_full();
}

bool FiberEngine::end_silent_handshake() noexcept {
  const std::int64_t since = coarse_ns() - kSilenceNs;
  Connection* connection;
  {
    Locked locked(lock_);
    connection = take_handshake(
        [&](const Connection& each) { return each.shakes_hands && (each.lingers || each.since_ns <= since); });
  }
  if (connection == nullptr) return false;
  counters.evicted.fetch_add(1, std::memory_order_relaxed);
  close(*connection);
  return true;
}

// close_late_handshakes is the reaper's part: those whose time is over, and while others wait for theirs, those whose
// clients are silent.
void FiberEngine::close_late_handshakes() noexcept {
  const std::int64_t now = coarse_ns();
  const std::int64_t limit = std::chrono::nanoseconds(options.handshake_timeout).count();
  close_asleep(counters.expired, [&] {
    return take_handshake([&](const Connection& each) {
      return each.shakes_hands ? each.stream.handshake_deadline().ns() <= now : each.since_ns + limit <= now;
    });
  });
  while (hellos_wait() && end_silent_handshake()) {
  }
}

bool FiberEngine::hellos_wait() noexcept {
  Locked locked(lock_);
  return handshakes_full();
}

}  // namespace coir::http
