#include <algorithm>

#include "http/fibers/fiber_engine.h"
#include "http/session/no_room.h"

namespace coir::http {

using namespace std::chrono_literals;

// reap is the body of the fiber that closes what has been idle for too long, and tries again where a stack or a session
// was missing.
void FiberEngine::reap() noexcept {
  const auto calm =
      std::clamp<std::chrono::nanoseconds>(std::min(options.idle_timeout, options.handshake_timeout) / 4, 10ms, 1s);
  for (;;) {
    const bool crowded = gauges().waiting > 0;
    if (!sleep(crowded ? std::min<std::chrono::nanoseconds>(calm, 50ms) : calm)) return;
    const std::int64_t now = coarse_ns();
    const std::int64_t idle_since = now - std::chrono::nanoseconds(options.idle_timeout).count();
    close_asleep(counters.expired, [&] { return take_longest_idle(idle_since); });
    close_late_handshakes();
    watch_memory();
    if (!crowded) continue;
    try_waiting();
    end_slow_heads();
    end_slowest_exchange();
    expire_waiting(now - std::chrono::nanoseconds(options.header_timeout).count());
  }
}

// close_all_asleep is for the end.
void FiberEngine::close_all_asleep() noexcept {
  close_asleep(counters.stopped_idle, [this] { return take_longest_idle(INT64_MAX); });
  close_asleep(counters.stopped_idle, [this] { return take_handshake([](const Connection&) { return true; }); });
}

// try_waiting makes up for a standby that could not be spawned.
void FiberEngine::try_waiting() noexcept {
  bool wanted;
  {
    Locked locked(lock_);
    wanted = want_standby();
  }
  if (wanted) spawn_standby();
}

void FiberEngine::expire_waiting(std::int64_t not_after_ns) noexcept {
  for (;;) {
    Connection* connection = nullptr;
    {
      Locked locked(lock_);
      for (ConnectionList* const list : {&waiting_, &hellos_}) {
        Connection* const first = list->front();
        if (first == nullptr || first->since_ns > not_after_ns) continue;
        list->remove(*first);
        connection = first;
        break;
      }
    }
    if (connection == nullptr) return;
    counters.refused.fetch_add(1, std::memory_order_relaxed);
    refuse_for_want_of_room(connection->stream, connection->tls != nullptr);
    close(*connection);
  }
}

}  // namespace coir::http
