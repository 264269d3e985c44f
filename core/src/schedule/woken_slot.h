#pragma once

#include <coir/atomic.h>
#include <coir/port/barrier.h>
#include <coir/spinlock.h>

namespace coir {

struct FiberControl;

// WokenSlot holds the fiber that a worker woke last, to be run next. Its owner puts in and takes out without a locked
// instruction; a thief, who is rare, pays for both with a barrier on every processor (a biased lock, as in "Quickly
// Reacquirable Locks" by Dice, Moir and Scherer).
//
// Invariant: the owner touches fiber_ only after it has set inside_ and then seen raided_ clear. A thief touches it
// only after it has set raided_, passed the barrier, and then seen inside_ clear. If the barrier falls after the
// owner's look at raided_, the thief sees inside_ set and waits; if before, the owner sees raided_.
class WokenSlot {
 public:
  // exchange stores `fiber`, which may be null, and returns the fiber that was there. Owner only.
  FiberControl* exchange(FiberControl* fiber) noexcept {
    if constexpr (kManyWorkers) enter();
    FiberControl* const before = fiber_.load(std::memory_order_relaxed);
    // release pairs with the acquire in steal: the fiber is what its waker left.
    fiber_.store(fiber, std::memory_order_release);
    if constexpr (kManyWorkers) inside_.store(false, std::memory_order_release);
    return before;
  }

  // peek is the fiber at this moment; a mere hint for all but the owner. Any worker.
  FiberControl* peek(std::memory_order order = std::memory_order_relaxed) const noexcept { return fiber_.load(order); }

  // steal takes `fiber` out if it is still there and no other thread holds the slot; the barrier must be prepared.
  // Other workers.
  bool steal(FiberControl* fiber) noexcept {
    bool none = false;
    if (!raided_.compare_exchange_strong(none, true, std::memory_order_acquire, std::memory_order_relaxed)) {
      return false;
    }
    port::barrier_everywhere();
    bool taken = false;
    for (int i = 0; i < kPatience && !taken; ++i) {
      // acquire pairs with the release in exchange.
      if (inside_.load(std::memory_order_acquire)) {
        Spinlock::relax();
        continue;
      }
      if (fiber_.load(std::memory_order_acquire) != fiber) break;
      fiber_.store(nullptr, std::memory_order_relaxed);
      taken = true;
    }
    // release pairs with the acquire in enter.
    raided_.store(false, std::memory_order_release);
    return taken;
  }

 private:
  static constexpr int kPatience = spins(64);  // the owner may have been preempted in the middle

  void enter() noexcept {
    for (SpinWait turn;; turn.pause()) {
      inside_.store(true, std::memory_order_relaxed);
      port::compiler_barrier();
      if (!raided_.load(std::memory_order_acquire)) [[likely]]
        return;
      inside_.store(false, std::memory_order_release);
    }
  }

  Atomic<FiberControl*> fiber_{nullptr};
  Atomic<bool> inside_{false};
  Atomic<bool> raided_{false};
};

}  // namespace coir
