#include <coir/cancel_scope.h>
#include <coir/event.h>

#include "tests/explore/explore.h"
#include "wait/park.h"
#include "wait/wait_round.h"

// The protocol of one wait, by what stands on it: a thread parks exactly as a fiber does, but for what saves a fiber's
// context, which runtime.cpp explores.

namespace coir::explore {

namespace {

using detail::WaitList;
using detail::WaitNode;

// Source is something that can end a wait, with the lock that the invariant of Waiter asks for.
struct Source {
  Spinlock lock;
  Waiter* shown = nullptr;

  void show(Waiter& waiter) noexcept {
    Locked hold(lock);
    shown = &waiter;
  }
  void withdraw() noexcept {
    Locked hold(lock);
    shown = nullptr;
  }
  // claim tells whether it won; the waiter is woken after the lock is gone, as by everybody who takes a lock.
  bool claim(WakeReason reason) noexcept {
    lock.lock();
    Waiter* const waiter = shown;
    const Waiter::Claim won = waiter != nullptr ? waiter->claim(reason) : Waiter::Claim::lost;
    if (won != Waiter::Claim::lost) shown = nullptr;
    lock.unlock();
    if (won == Waiter::Claim::parked) waiter->wake();
    return won != Waiter::Claim::lost;
  }
};

WakeReason wait_at(Source& one, Source& other, Deadline deadline = Deadline::never()) noexcept {
  ThreadWaiter waiter;
  waiter.arm();
  one.show(waiter);
  other.show(waiter);
  const WakeReason reason = waiter.park(deadline);
  one.withdraw();
  other.withdraw();
  return reason;
}

// One of two sources wins, whenever they come; the other finds no waiter and keeps its value.
void claimed_once() {
  Source one, other;
  bool first = false, second = false;
  WakeReason reason{};
  threads([&] { reason = wait_at(one, other); },
          [&] {
            while (!first && !second) {
              first = one.claim(WakeReason::ready);
              second = second || (!first && other.claim(WakeReason::closed));
              let_others_go();
            }
          });
  require(first != second);
  require(reason == (first ? WakeReason::ready : WakeReason::closed));
}

void two_compete() {
  Source one, other;
  Atomic<bool> done{false};
  bool first = false, second = false;
  WakeReason reason{};
  threads(
      [&] {
        reason = wait_at(one, other);
        done.store(true);
      },
      [&] {
        for (; !first && !done.load(); let_others_go()) first = one.claim(WakeReason::ready);
      },
      [&] {
        for (; !second && !done.load(); let_others_go()) second = other.claim(WakeReason::closed);
      });
  require(first != second);
  require(reason == (first ? WakeReason::ready : WakeReason::closed));
}

// A source that ends the first wait too late finds no waiter, and never ends the second wait.
void late_claim_meets_no_later_wait() {
  Source late, second;
  bool won = false;
  WakeReason reasons[2] = {};
  threads(
      [&] {
        reasons[0] = wait_at(late, late, Deadline::after(std::chrono::milliseconds(1)));
        reasons[1] = wait_at(second, second);
      },
      [&] { won = late.claim(WakeReason::ready); },
      [&] {
        while (!second.claim(WakeReason::closed)) let_others_go();
      });
  require(reasons[0] == (won ? WakeReason::ready : WakeReason::timed_out));
  require(reasons[1] == WakeReason::closed);
}

// A value that is handed over reaches the waiter or stays with the sender.
void handed_over_once() {
  Spinlock lock;
  WaitList list;
  int value = 0;
  bool given = false, got = false;
  threads(
      [&] {
        WaitNode node;
        int slot = 0;
        node.slot = &slot;
        lock.lock();
        got = detail::wait_in(lock, list, node, {.kind = WaitKind::receive},
                              Deadline::after(std::chrono::milliseconds(1)))
                  .has_value();
        value = slot;
      },
      [&] {
        lock.lock();
        WaitNode* const node = detail::take_first(list);
        lock.unlock();
        if (node == nullptr) return;
        *static_cast<int*>(node->slot) = 7;
        given = true;
        detail::wake_winner(*node);
      });
  require(got == given);
  require(value == (given ? 7 : 0));
}

// The first in line is served first; a waiter that has left is skipped.
void line_is_kept() {
  Spinlock lock;
  WaitList line;
  bool served = false, claimed = false;
  Error error;
  threads(
      [&] {
        WaitNode node;
        lock.lock();
        const auto waited = detail::wait_in(lock, line, node, {.kind = WaitKind::admission},
                                            Deadline::after(std::chrono::milliseconds(1)));
        served = waited.has_value();
        if (!served) error = waited.error();
      },
      [&] {
        Waiter* woken = nullptr;
        lock.lock();
        if (WaitNode* const first = detail::take_first(line); first != nullptr) {
          claimed = true;
          woken = detail::tell_winner(*first);  // under the lock, as a nursery does
        }
        lock.unlock();
        if (woken != nullptr) woken->wake();
      });
  require(served == claimed);
  require(served || error.code == ErrorCode::timed_out);
  require(line.empty());
}

// A wait that begins while its scope is being cancelled ends: the mark or the wait is seen.
void cancel_meets_beginning_wait() {
  Event never;
  Atomic<CancelScope*> scope{nullptr};
  Atomic<bool> left{false};
  bool cancelled = false;
  threads(
      [&] {
        CancelScope mine;
        scope.store(&mine);
        cancelled = !never.wait().has_value();
        while (!left.load()) let_others_go();
      },
      [&] {
        while (scope.load() == nullptr) let_others_go();
        scope.load()->cancel();
        left.store(true);
      });
  require(cancelled);
}

// Cancelled or set, whichever comes first: the wait ends once, and the one after it is not touched.
void cancel_against_wake() {
  Event event, later;
  Atomic<CancelScope*> scope{nullptr};
  Atomic<bool> left{false};
  bool first = false, second = false;
  threads(
      [&] {
        {
          CancelScope mine;
          scope.store(&mine);
          first = event.wait().has_value();
          while (!left.load()) let_others_go();
        }
        second = later.wait().has_value();
      },
      [&] {
        while (scope.load() == nullptr) let_others_go();
        scope.load()->cancel();
        left.store(true);
      },
      [&] {
        event.set();
        later.set();
      });
  require(second);
}

constexpr Scenario kWaiterScenarios[] = {
    {"waiter_is_claimed_once", claimed_once, {.preemptions = 3}},
    {"waiter_two_compete", two_compete},
    {"waiter_late_claim_meets_no_later_wait", late_claim_meets_no_later_wait, {.timeouts = true}},
    {"waiter_handed_over_once", handed_over_once, {.preemptions = 3, .timeouts = true}},
    {"waiter_line_is_kept", line_is_kept, {.timeouts = true}},
    {"cancel_meets_beginning_wait", cancel_meets_beginning_wait, {.preemptions = 3}},
    {"cancel_against_wake", cancel_against_wake},
};

}  // namespace

std::span<const Scenario> waiter_scenarios() noexcept {
  return kWaiterScenarios;
}

}  // namespace coir::explore
