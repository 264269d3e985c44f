#pragma once

#include <sched.h>

#include <coir/spinlock.h>

#include "control.h"

namespace coir {

// await_done waits out the few instructions between a fiber's last claim and the switch off its stack, on another
// worker.
inline void await_done(const FiberControl* fiber) noexcept {
  for (int spins = 0; fiber->join.load(std::memory_order_acquire) != FiberControl::kDone; ++spins) {
    if (spins < 128) {
      Spinlock::relax();
    } else {
      sched_yield();
    }
  }
}

// open_to_waiting shows the joiner to the fiber; false when it has ended meanwhile.
inline bool open_to_waiting(FiberControl* fiber, Waiter* joiner) noexcept {
  fiber->joiner = joiner;
  std::uint32_t open = FiberControl::kOpen;
  // release publishes `joiner` to end_fiber.
  return fiber->join.compare_exchange_strong(open, FiberControl::kWaiting, std::memory_order_acq_rel,
                                             std::memory_order_acquire);
}

// leave_joining takes the joiner back; false when the fiber has ended meanwhile, and has claimed whoever waited for it.
inline bool leave_joining(FiberControl* fiber) noexcept {
  std::uint32_t waiting = FiberControl::kWaiting;
  return fiber->join.compare_exchange_strong(waiting, FiberControl::kOpen, std::memory_order_acq_rel,
                                             std::memory_order_acquire);
}

}  // namespace coir
