// Dispatcher, of dispatcher.h: how connections go to rest, and how those end that rest for too long.
#include "http/concurrent/dispatcher.h"
#include "http/connection/shed.h"

namespace coir::http {

bool Dispatcher::rest(Connection& connection, std::int64_t since_ns) noexcept {
  if (engine_.stopping()) {
    if (connection.has_half_head) return false;
    // Its client was told that it may go on. A handshake may not.
    if (connection.tls == nullptr && has_arrived(connection)) return false;
    close(connection);
    return true;
  }
  connection.stream.rest();
  connection.since_ns = since_ns;
  {
    // Before the record is armed, for from then on wake may run on another worker and take it out.
    Locked locked(lock_);
    queues_.rest(connection);
  }
  const auto armed = arm_resting_wait(connection, connection.stream.fd());
  if (armed) return true;
  {
    Locked locked(lock_);
    queues_.unrest(connection);
  }
  if (armed.error() == ErrorCode::busy) {
    connection.stream.mark_readable();
    return false;
  }
  // The kernel is short of what a wait takes. A client that has had no answer yet gets a refusal.
  if (connection.requests == 0) {
    engine_.counters.refused.fetch_add(1, std::memory_order_relaxed);
    shed(connection.stream, connection.tls != nullptr);
  }
  close(connection);
  return true;
}

bool Dispatcher::serve_arrived(Connection& connection) noexcept {
  if (!has_arrived(connection)) return false;
  serve_soon(connection);
  return true;
}

void Dispatcher::close_resting(Atomic<std::uint64_t>& counter, std::int64_t not_after_ns) noexcept {
  const auto longest = [=](ConnectionQueues& queues) { return queues.take_longest_resting(not_after_ns); };
  while (Connection* const connection = take(longest)) {
    if (serve_arrived(*connection)) continue;
    counter.fetch_add(1, std::memory_order_relaxed);
    close(*connection);
  }
}

}  // namespace coir::http
