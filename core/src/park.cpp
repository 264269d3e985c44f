#include "park.h"

#include <coir/port/futex.h>

namespace coir {

ThreadWaiter::ThreadWaiter() noexcept : Waiter(&wake_thread, 0) {}

void ThreadWaiter::wake_thread(Waiter& waiter) noexcept {
  auto& self = static_cast<ThreadWaiter&>(waiter);
  // The thread may return from park, and this object end, as soon as the word changes: the wake goes by address alone.
  self.asleep_.store(0, std::memory_order_release);
  port::futex_wake(self.asleep_);
}

WakeReason ThreadWaiter::park(Deadline deadline) noexcept {
  const ShownWait shown(*this);
  if (!begin_scoped_wait(deadline) && claim(WakeReason::cancelled) != Claim::lost) return reason();
  if (commit()) {
    while (asleep_.load(std::memory_order_acquire) != 0) {
      std::int64_t timeout = -1;
      if (!deadline.is_never()) {
        timeout = deadline.ns() - monotonic_ns();
        if (timeout <= 0) {
          const Claim won = claim(WakeReason::timed_out);
          if (won != Claim::lost) break;
          timeout = -1;  // somebody else won and is about to wake this thread
        }
      }
      port::futex_wait(asleep_, 1, timeout);
    }
  }
  return reason();
}

}  // namespace coir
