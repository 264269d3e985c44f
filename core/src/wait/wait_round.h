#pragma once

#include <cstdint>
#include <expected>

#include <coir/deadline.h>
#include <coir/detail/wait_list.h>
#include <coir/error.h>
#include <coir/spinlock.h>

#include "wait/park.h"

namespace coir::detail {

// WaitRound is one wait of a fiber or a thread for whatever comes first of one or more things; each has a WaitNode of
// it in its WaitList. Everything that fibers and threads wait for, but descriptors, timers and ends of fibers, is
// written on these two.
//
// The fiber or thread that ends a wait, under the list's lock,
//   1. takes the oldest node out of the list and claims its waiter, until a claim is won (take_first),
// and then, without the lock,
//   2. moves the value, or whatever is handed over,
//   3. ends the round: names the node that won, and wakes the waiter if the claim found it parked. If nothing is
//      moved the lock may still be held while the node is named, but not when the waiter is woken (tell_winner).
// The waiter's claimed state keeps it in place until 3: parked, it is not runnable; armed, it spins in await_winner. So
// nothing of the round is touched after 3, and nothing that is handed over can be lost. A waiter that another source
// ends takes its nodes out under their lists' locks; a node that was found in vain is out already.
struct WaitRound {
  explicit WaitRound(Waiter& who) noexcept : waiter(&who) {}

  Waiter* waiter;
  Atomic<WaitNode*> winner{nullptr};

  // await_winner waits out the few instructions between a claim of the armed waiter and wake_winner.
  WaitNode* await_winner() noexcept {
    if constexpr (!kManyWorkers) return winner.load(std::memory_order_relaxed);
    // acquire pairs with the release in wake_winner: what was handed over is complete.
    WaitNode* node = winner.load(std::memory_order_acquire);
    return node != nullptr ? node : spin_for_winner();
  }

 private:
  WaitNode* spin_for_winner() noexcept;
};

// tell_winner tells the claimed waiter that `node` won. It returns the waiter that the caller wakes, or null: then the
// waiter goes on by itself, and node is gone. With the list's lock or without.
inline Waiter* tell_winner(WaitNode& node) noexcept {
  WaitRound& round = *node.round;
  if (!node.parked) {
    // release pairs with await_winner.
    round.winner.store(&node, std::memory_order_release);
    return nullptr;
  }
  round.winner.store(&node, std::memory_order_relaxed);  // waking the fiber publishes this
  return round.waiter;
}

// wake_winner tells the claimed waiter that `node` won, and lets it go on. Without the list's lock; node is gone
// afterwards, and whatever the waiter then destroys.
inline void wake_winner(WaitNode& node) noexcept {
  if (Waiter* const woken = tell_winner(node); woken != nullptr) woken->wake();
}

// claim takes a node out of `list`, in which it stands, and claims its waiter; false when another source has woken the
// waiter. Under the list's lock.
inline bool claim(WaitList& list, WaitNode& node) noexcept {
  list.remove(node);
  const Waiter::Claim won = node.round->waiter->claim(WakeReason::handed);
  node.parked = won == Waiter::Claim::parked;
  return won != Waiter::Claim::lost;
}

// take_first claims the oldest waiter that still waits, or returns null. Under the list's lock.
inline WaitNode* take_first(WaitList& list) noexcept {
  while (WaitNode* const node = list.front()) {
    if (claim(list, *node)) return node;
  }
  return nullptr;
}

// WakeList collects waiters that are claimed under a lock and woken once it is given up.
class WakeList {
 public:
  void add(WaitNode& taken) noexcept { nodes_.push(taken); }

  // add_all claims every waiter of the list, in order.
  void add_all(WaitList& list) noexcept {
    while (WaitNode* const taken = take_first(list)) add(*taken);
  }

  void wake_all() noexcept {
    while (WaitNode* const node = nodes_.pop()) wake_winner(*node);
  }

 private:
  IntrusiveQueue<WaitNode> nodes_;
};

// all_inside tells whether `count` waiters of the line are `inside` and still wait. Under the list's lock.
bool all_inside(const WaitList& line, std::size_t count) noexcept;

// WaitFor is how a report describes a wait.
struct WaitFor {
  WaitKind kind;
  std::int64_t object = 0;
};

// ReleaseInLine releases one thing once its holder stands in line for another.
using ReleaseInLine = void (*)(void* of) noexcept;

// withdraw takes a waiter out of the line after another source woke it, and tells why it was woken.
std::unexpected<Error> withdraw(Spinlock& lock, WaitList& list, WaitNode& node, WakeReason reason) noexcept;

// wait_in_on_thread is wait_in for plain threads.
std::expected<void, Error> wait_in_on_thread(Spinlock& lock, WaitList& list, WaitNode& node, Deadline deadline,
                                             Shielded shielded, ReleaseInLine release, void* of) noexcept;

// wait_in waits in line until `node` is taken. Call it with `lock` held, which guards `list`; it returns without the
// lock and with the node out of the list. After joining the line and unlocking, it calls release(of) before it parks.
// Errors: timed_out, cancelled, unsupported (on a worker's own stack, and on a plain thread in a single-worker build).
std::expected<void, Error> wait_in(Spinlock& lock, WaitList& list, WaitNode& node, WaitFor what, Deadline deadline,
                                   Shielded shielded = Shielded::no, ReleaseInLine release = nullptr,
                                   void* of = nullptr) noexcept;

// wait_in_here is wait_in inlined, for hot paths that cannot afford the return from a call; see Worker::switch_from.
[[gnu::always_inline]] inline std::expected<void, Error> wait_in_here(Spinlock& lock, WaitList& list, WaitNode& node,
                                                                      WaitFor what, Deadline deadline,
                                                                      Shielded shielded = Shielded::no,
                                                                      ReleaseInLine release = nullptr,
                                                                      void* of = nullptr) noexcept {
  FiberControl* const self = running_fiber();
  if (self == nullptr) [[unlikely]]
    return wait_in_on_thread(lock, list, node, deadline, shielded, release, of);
  const bool impatient = deadline.ns() <= 0;
  if (impatient || (shielded == Shielded::no && is_cancelled(self))) [[unlikely]] {
    lock.unlock();
    return std::unexpected(impatient ? Error{ErrorCode::timed_out} : error_of(WakeReason::cancelled));
  }
  WaitRound round(*self);
  node.round = &round;
  arm(self, shielded);
  list.push(node);
  lock.unlock();
  if (release != nullptr) release(of);
  const WakeReason reason = park(self, what.kind, what.object, deadline, shielded);
  if (reason == WakeReason::handed) [[likely]] {
    round.await_winner();
    return {};
  }
  return withdraw(lock, list, node, reason);
}

}  // namespace coir::detail
