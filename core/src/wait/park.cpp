#include "wait/park.h"

#include <coir/port/futex.h>

namespace coir {

ThreadWaiter::ThreadWaiter() noexcept : ThreadWaiter(&wake_thread) {}

void ThreadWaiter::wake_thread(Waiter& waiter) noexcept {
  port::expect_no_spinlock("a wakeup");
  auto& self = static_cast<ThreadWaiter&>(waiter);
  // As soon as the word changes the thread may return from park and this object may end: wake by address alone.
  SharedAtomic<std::uint32_t>& state = self.state_;
  if (state.exchange(kWoken, std::memory_order_acq_rel) == kSleeps) port::futex_wake(state);
}

// spin waits for a moment without going to sleep; true when the thread was woken.
bool ThreadWaiter::spin() noexcept {
  for (int i = 0; i < kSpins; ++i) {
    if (state_.load(std::memory_order_acquire) == kWoken) return true;
    Spinlock::relax();
  }
  std::uint32_t waits = kWaits;
  return !state_.compare_exchange_strong(waits, kSleeps, std::memory_order_acq_rel, std::memory_order_acquire);
}

WakeReason ThreadWaiter::park(Deadline deadline, Shielded shielded) noexcept {
  const ShownWait shown(*this, shielded);
  if (!begin_scoped_wait(deadline, shielded) && claim(WakeReason::cancelled) != Claim::lost) return reason();
  if (commit() && !spin()) {
    while (state_.load(std::memory_order_acquire) != kWoken) {
      std::int64_t timeout = -1;
      if (!deadline.is_never()) {
        timeout = deadline.ns() - monotonic_ns();
        if (timeout <= 0) {
          const Claim won = claim(WakeReason::timed_out);
          if (won != Claim::lost) break;
          timeout = -1;  // another source won and is about to wake this thread
        }
      }
      port::futex_wait(state_, kSleeps, timeout);
    }
  }
  return reason();
}

}  // namespace coir
