#pragma once

#include <coir/atomic.h>

#include "base/biased_lock.h"

namespace coir {

struct FiberControl;

// WokenSlot holds the fiber that a worker woke last, to be run next. Its owner puts in and takes out without a locked
// instruction; a thief is rare.
class WokenSlot {
 public:
  // exchange stores `fiber`, which may be null, and returns the fiber that was there. Owner only.
  FiberControl* exchange(FiberControl* fiber) noexcept {
    lock_.enter();
    FiberControl* const before = fiber_.load(std::memory_order_relaxed);
    // release pairs with the acquire in steal: the fiber is what its waker left.
    fiber_.store(fiber, std::memory_order_release);
    lock_.leave();
    return before;
  }

  // peek is the fiber at this moment; a mere hint for all but the owner. Any worker.
  FiberControl* peek(std::memory_order order = std::memory_order_relaxed) const noexcept { return fiber_.load(order); }

  using Raid = BiasedLock::Raid;

  // steal takes `fiber` out if it is still there and no other thread holds the slot; the barrier must be prepared.
  // Other workers.
  Raid steal(FiberControl* fiber) noexcept {
    if (const Raid raid = lock_.raid(); raid != Raid::entered) return raid;
    // acquire pairs with the release in exchange.
    const bool taken = fiber_.load(std::memory_order_acquire) == fiber;
    if (taken) fiber_.store(nullptr, std::memory_order_relaxed);
    lock_.end_raid();
    return taken ? Raid::entered : Raid::repelled;
  }

 private:
  Atomic<FiberControl*> fiber_{nullptr};
  BiasedLock lock_;
};

}  // namespace coir
