#include <coir/spinlock.h>

#include <sched.h>

namespace coir {

COIR_RARELY void SpinWait::yield_cpu() noexcept {
  sched_yield();
}

#if !COIR_SINGLE_WORKER
// lock_contended waits by loads alone, which leave the line with the holder.
COIR_RARELY void Spinlock::lock_contended() noexcept {
  SpinWait turn;
  do {
    while (held_.load(std::memory_order_relaxed)) turn.pause();
    // acquire pairs with the release in unlock.
  } while (held_.exchange(true, std::memory_order_acquire));
}
#endif

}  // namespace coir
