#pragma once

#include <coir/atomic.h>
#include <coir/port/barrier.h>
#include <coir/spinlock.h>

#include <cstdint>

namespace coir {

// BiasedLock guards what one thread, its owner, uses all the time and others hardly ever. The owner enters without a
// locked instruction; a raider, who is rare, pays for both with a barrier on every processor ("Quickly Reacquirable
// Locks" by Dice, Moir and Scherer).
//
// Invariant: the owner is inside only after it has set inside_ and then seen raided_ clear. A raider is inside only after
// it has set raided_, passed the barrier, and then seen inside_ clear. If the barrier falls after the owner's look at
// raided_, the raider sees inside_ set and waits; if before, the owner sees raided_.
class BiasedLock {
 public:
  void enter() noexcept {
    if constexpr (!kManyWorkers) return;
    for (SpinWait turn;; turn.pause()) {
      inside_.store(true, std::memory_order_relaxed);
      port::compiler_barrier();
      // acquire pairs with the release in end_raid.
      if (!raided_.load(std::memory_order_acquire)) [[likely]]
        return;
      inside_.store(false, std::memory_order_release);
    }
  }
  void leave() noexcept {
    if constexpr (kManyWorkers) inside_.store(false, std::memory_order_release);
  }

  enum class Raid : std::uint8_t { entered, repelled, impossible };

  // raid enters for another thread. `repelled`: one more raids, or the owner does not leave soon: it may have been
  // preempted inside. `impossible`: there is no barrier any more. After port::prepare_barrier.
  Raid raid() noexcept {
    bool none = false;
    if (!raided_.compare_exchange_strong(none, true, std::memory_order_acquire, std::memory_order_relaxed)) {
      return Raid::repelled;
    }
    const bool passed = port::barrier_everywhere();
    for (int i = 0; passed && i < kPatience; ++i) {
      // acquire pairs with the release in leave.
      if (!inside_.load(std::memory_order_acquire)) return Raid::entered;
      Spinlock::relax();
    }
    end_raid();
    return passed ? Raid::repelled : Raid::impossible;
  }
  void end_raid() noexcept { raided_.store(false, std::memory_order_release); }

 private:
  static constexpr int kPatience = spins(64);

  Atomic<bool> inside_{false};
  Atomic<bool> raided_{false};
};

}  // namespace coir
