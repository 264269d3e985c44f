#pragma once

#include <expected>

#include <coir/deadline.h>
#include <coir/descriptor.h>
#include <coir/error.h>

#include "fiber/waiter.h"
#include "schedule/scheduler.h"
#include "schedule/switching.h"
#include "schedule/worker.h"
#include "wait/current_scope.h"

namespace coir {

// running_fiber is the calling fiber, or null on a plain thread and in a worker's loop.
inline FiberControl* running_fiber() noexcept {
  Worker* const worker = this_worker();
  return worker == nullptr ? nullptr : worker->current();
}

// wait_kind is how a wait for that direction shows.
inline WaitKind wait_kind(Direction direction) noexcept {
  return static_cast<WaitKind>(static_cast<int>(WaitKind::readable) + static_cast<int>(direction));
}

// acting_fiber is the running fiber, also while it calls something on its worker's stack, or null.
inline FiberControl* acting_fiber() noexcept {
  Worker* const worker = this_worker();
  return worker == nullptr ? nullptr : worker->acting();
}

// is_cancelled tells whether `fiber`, the caller, must end its waits.
inline bool is_cancelled(const FiberControl* fiber) noexcept {
  if (fiber->cancelled() || (fiber->worker->scheduler().cancelling() && !fiber->shielded())) return true;
  return fiber->current_scope != nullptr && cancelled_scope(fiber->current_scope) != nullptr;
}

// arm starts a wait, which park ends; pass the same `shielded` to both. A shielded wait is armed with ticket 0:
// cancellation claims by ticket, and no fiber's id is 0.
inline void arm(FiberControl* fiber, Shielded shielded = Shielded::no) noexcept {
  fiber->arm(shielded == Shielded::yes ? 0 : fiber->ticket);
}

inline void disarm(FiberControl* fiber) noexcept {
  fiber->disarm(fiber->ticket);
}

// begin_scoped_wait is the first step of park for a fiber inside scopes: it lowers `deadline` to the one in force.
// False: a scope has ended the wait already, the wait is claimed, and the fiber must not park.
bool begin_scoped_wait(FiberControl* self, Deadline& deadline) noexcept;

// late_scope is the id of the scope whose deadline ended the caller's latest wait, given that it timed out; 0 for the
// call's own deadline.
inline std::uint16_t late_scope(const FiberControl* self) noexcept {
  return self->current_scope == nullptr ? 0 : self->late;
}

// DeadlineTimer ends a fiber's wait. Its claim runs under the wheel's lock, which the owner takes to stop the timer: it
// meets this wait or none.
struct DeadlineTimer : Timer {
  explicit DeadlineTimer(FiberControl* owner) noexcept : Timer(&fired), fiber(owner) {}
  static FiberControl* fired(Timer& timer) noexcept {
    FiberControl* const fiber = static_cast<DeadlineTimer&>(timer).fiber;
    return fiber->claim(WakeReason::timed_out) == Waiter::Claim::parked ? fiber : nullptr;
  }

  FiberControl* fiber;
};

// park suspends the calling fiber, armed and shown to its sources, until one of them, the deadline, a scope or a
// cancellation wakes it; a shielded wait ends by its sources and its own deadline only. The caller then takes itself
// out of the sources that did not win.
[[gnu::always_inline]] inline WakeReason park(FiberControl* self, WaitKind kind, std::int64_t object, Deadline deadline,
                                              Shielded shielded = Shielded::no) noexcept {
  if (self->current_scope != nullptr) {
    if (shielded == Shielded::yes) {
      self->late = 0;
    } else if (!begin_scoped_wait(self, deadline)) {
      return self->reason();
    }
  }
  if (deadline.ns() <= 0) [[unlikely]] {  // has always passed, and none waits for the next tick
    self->claim(WakeReason::timed_out);
    return self->reason();
  }
  self->wait_kind.store(kind, std::memory_order_relaxed);
  self->wait_object.store(object, std::memory_order_relaxed);
  self->since.store(self->worker->tick(), std::memory_order_relaxed);
  self->state.store(FiberControl::State::parked, std::memory_order_relaxed);
  DeadlineTimer timer(self);
  if (!deadline.is_never()) self->worker->wheel().start(timer, deadline.ns());
  Worker::suspend(self, Commit::parked);
  if (!deadline.is_never()) timer.wheel->stop(timer);
  self->wait_kind.store(WaitKind::nothing, std::memory_order_relaxed);
  return self->reason();
}

// ThreadWaiter is the Waiter of an OS thread that is no worker.
class ThreadWaiter : public Waiter {
 public:
  ThreadWaiter() noexcept;
  void arm() noexcept { Waiter::arm(0); }
  WakeReason park(Deadline deadline, Shielded shielded = Shielded::no) noexcept;

 protected:
  explicit ThreadWaiter(Wake wake) noexcept : Waiter(wake, 0) {}
  static void wake_thread(Waiter& waiter) noexcept;

 private:
  static constexpr std::uint32_t kWoken = 0, kWaits = 1, kSleeps = 2;  // only kSleeps costs the waker a system call
  static constexpr int kSpins = spins(64);  // a direct handover comes within about a microsecond
  bool spin() noexcept;
  SharedAtomic<std::uint32_t> state_{kWaits};
};

// error_of maps the reasons that are failures, and names the scope that ended the caller's latest wait.
Error error_of(WakeReason reason) noexcept;

// Caller is the caller as a Waiter for one wait: the running fiber, or a plain thread.
class Caller {
 public:
  Caller() noexcept : fiber_(running_fiber()) {}

  // may_wait is false where a wait could never end: on a worker's own stack, and on a plain thread in a single-worker
  // build.
  bool may_wait() const noexcept { return fiber_ != nullptr || (kManyWorkers && this_worker() == nullptr); }
  bool is_cancelled() const noexcept {
    return fiber_ != nullptr ? coir::is_cancelled(fiber_) : cancelled_scope(current_scope()) != nullptr;
  }
  Waiter* arm() noexcept {
    if (fiber_ == nullptr) {
      thread_.arm();
      return &thread_;
    }
    coir::arm(fiber_);
    return fiber_;
  }
  WakeReason park(WaitKind kind, std::int64_t object, Deadline deadline) noexcept {
    return fiber_ != nullptr ? coir::park(fiber_, kind, object, deadline) : thread_.park(deadline);
  }

 private:
  FiberControl* fiber_;
  ThreadWaiter thread_;
};

}  // namespace coir
