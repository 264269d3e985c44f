#pragma once

#include <cstdint>

#include <coir/atomic.h>

namespace coir {

// WakeReason is why a wait ended. If it was `handed` something, its WaitRound knows what.
enum class WakeReason : std::uint8_t { none, ready, joined, timed_out, cancelled, closed, handed };

// Waiter is anything that can wait: a fiber, or an OS thread on a futex. The sources that can end a wait (a readiness,
// a timer, a cancellation) compete for it by claim(); exactly one wins, and only the winner wakes.
//
// One wait goes
//   arm()                      the owner: the word says Armed
//   ... the owner shows itself to the sources ...
//   park                       the owner's context is saved, then commit(): Armed -> Parked
//   claim(reason)              a source: Armed or Parked -> Notified
//     from Parked              the winner calls wake(): the owner runs on
//     from Armed               the owner's own commit fails and the owner runs on: no wakeup is lost
//   ... the owner takes itself back from the sources that did not win ...
//
// Invariant: a source may call claim() only while the owner cannot have left this wait, that is under the lock (or the
// lock bit) that the owner needs in order to take itself back. Then a claim never reaches a later wait. Cancellation
// has no such lock; it names the owner by ticket, and a wait that it ends needlessly finds no cancel mark.
class Waiter {
 public:
  using Wake = void (*)(Waiter& self);

  Waiter(Wake wake, std::uint64_t ticket) noexcept : wake_(wake) {
    word_.store(ticket << kTicketShift, std::memory_order_relaxed);
  }

  // reset makes a waiter of reused memory.
  void reset(Wake wake, std::uint64_t ticket) noexcept {
    word_.store(ticket << kTicketShift, std::memory_order_relaxed);
    wake_ = wake;
  }

  // wakes_by tells what kind of waiter this is.
  bool wakes_by(Wake wake) const noexcept { return wake_ == wake; }

  // arm starts a wait. Owner only. With one worker nothing else runs before the owner has parked, so it counts as
  // parked at once.
  void arm(std::uint64_t ticket) noexcept {
    word_.store(ticket << kTicketShift | (kManyWorkers ? kArmed : kParked), std::memory_order_release);
  }

  // disarm ends a wait that never parked, once no source sees it: cancel_waiting would take a word that is armed for a wait.
  // Owner only.
  void disarm(std::uint64_t ticket) noexcept { word_.store(ticket << kTicketShift, std::memory_order_relaxed); }

  // commit runs after the owner's context is saved. False: a claim came first and the owner must be made runnable.
  // seq_cst pairs with the mark in cancel: either this sees the mark afterwards, or the canceller sees Parked.
  bool commit() noexcept {
    if constexpr (!kManyWorkers) return true;
    std::uint64_t word = word_.load(std::memory_order_relaxed);
    if ((word & kStateMask) != kArmed) return false;
    return word_.compare_exchange_strong(word, (word & ~kStateMask) | kParked, std::memory_order_seq_cst,
                                         std::memory_order_acquire);
  }

  enum class Claim : std::uint8_t { lost, armed, parked };

  // claim ends the wait for `reason`; see the invariant above. release publishes what the winner wrote before; it pairs
  // with the acquire in reason().
  Claim claim(WakeReason reason) noexcept { return claim_if(reason, nullptr); }

  // claim_ticket is claim for callers without the sources' locks: it ends a wait of the owner with that ticket only.
  Claim claim_ticket(WakeReason reason, std::uint64_t ticket) noexcept { return claim_if(reason, &ticket); }

  // reason tells the owner, once it runs again, who won.
  WakeReason reason() const noexcept {
    return static_cast<WakeReason>(word_.load(std::memory_order_acquire) >> kReasonShift & kReasonMask);
  }

  // wake makes the owner run. Called once, by the winner of a claim from Parked.
  void wake() noexcept { wake_(*this); }

  // claim_and_wake is both, for sources that hold no lock that wake may need.
  bool claim_and_wake(WakeReason reason) noexcept {
    const Claim won = claim(reason);
    if (won == Claim::parked) wake();
    return won != Claim::lost;
  }

 private:
  static constexpr std::uint64_t kArmed = 1, kParked = 2, kNotified = 3, kStateMask = 3;
  static constexpr unsigned kReasonShift = 4, kTicketShift = 8;
  static constexpr std::uint64_t kReasonMask = 15;

  Claim claim_if(WakeReason reason, const std::uint64_t* ticket) noexcept {
    std::uint64_t word = word_.load(std::memory_order_seq_cst);
    for (;;) {
      const std::uint64_t state = word & kStateMask;
      if (state != kArmed && state != kParked) return Claim::lost;
      if (ticket != nullptr && word >> kTicketShift != *ticket) return Claim::lost;
      const std::uint64_t next =
          (word >> kTicketShift << kTicketShift) | static_cast<std::uint64_t>(reason) << kReasonShift | kNotified;
      if (word_.compare_exchange_weak(word, next, std::memory_order_acq_rel, std::memory_order_acquire)) {
        return state == kParked ? Claim::parked : Claim::armed;
      }
    }
  }

  Atomic<std::uint64_t> word_;  // ticket | reason | state
  Wake wake_;
};

}  // namespace coir
