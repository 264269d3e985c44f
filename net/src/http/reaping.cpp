#include <algorithm>

#include "engine.h"
#include "no_room.h"

namespace coir::http {

using namespace std::chrono_literals;

// reap is the body of the fiber that closes what has been idle for too long, and tries again where a stack or a session
// was missing.
void Engine::reap() noexcept {
  const auto calm =
      std::clamp<std::chrono::nanoseconds>(std::min(options.idle_timeout, options.handshake_timeout) / 4, 10ms, 1s);
  for (;;) {
    const bool crowded = gauges().waiting > 0;
    if (!sleep(crowded ? std::min<std::chrono::nanoseconds>(calm, 50ms) : calm)) return;
    const std::int64_t now = coarse_ns();
    const std::chrono::nanoseconds idle = options.idle_timeout, handshake = options.handshake_timeout;
    close_asleep(&Engine::take_longest_idle, now - idle.count(), counters.expired);
    close_asleep(&Engine::take_slow_handshake, now - handshake.count(), counters.expired);
    watch_memory();
    if (!crowded) continue;
    try_waiting();
    end_slow_readers();
    expire_waiting(now - std::chrono::nanoseconds(options.header_timeout).count());
  }
}

void Engine::close_asleep(Take take, std::int64_t not_after_ns, Atomic<std::uint64_t>& counter) noexcept {
  for (;;) {
    Connection* connection;
    {
      Locked locked(lock_);
      connection = (this->*take)(not_after_ns);
    }
    if (connection == nullptr) return;
    counter.fetch_add(1, std::memory_order_relaxed);
    close(*connection);
  }
}

// try_waiting makes up for a standby that could not be spawned.
void Engine::try_waiting() noexcept {
  bool wanted;
  {
    Locked locked(lock_);
    wanted = want_standby();
  }
  if (wanted) spawn_standby();
}

void Engine::expire_waiting(std::int64_t not_after_ns) noexcept {
  for (;;) {
    Connection* connection;
    {
      Locked locked(lock_);
      connection = waiting_.front();
      if (connection == nullptr || connection->since_ns > not_after_ns) return;
      waiting_.remove(*connection);
    }
    counters.refused.fetch_add(1, std::memory_order_relaxed);
    refuse_for_want_of_room(connection->stream, connection->tls != nullptr);
    close(*connection);
  }
}

}  // namespace coir::http
