#pragma once

#include <expected>

#include <coir/deadline.h>
#include <coir/error.h>

#include "scheduler.h"
#include "switching.h"
#include "waiter.h"
#include "worker.h"

namespace coir {

// running_fiber is the fiber that calls, or null on a plain thread and in a worker's loop.
inline FiberControl* running_fiber() noexcept {
  Worker* const worker = this_worker();
  return worker == nullptr ? nullptr : worker->current();
}

// is_cancelled tells whether `fiber`, which is the caller, is to give up its waits.
inline bool is_cancelled(const FiberControl* fiber) noexcept {
  return fiber->cancelled() || fiber->worker->scheduler().cancelling();
}

inline void arm(FiberControl* fiber) noexcept {
  fiber->arm(fiber->id.load(std::memory_order_relaxed));
}

// arm_shielded starts a wait that no cancellation ends, of a cancelled fiber too: cancelling claims by ticket, and no
// fiber's id is 0. For what must be waited for because it holds on to the fiber's own memory.
inline void arm_shielded(FiberControl* fiber) noexcept {
  fiber->arm(0);
}

inline void disarm(FiberControl* fiber) noexcept {
  fiber->disarm(fiber->id.load(std::memory_order_relaxed));
}

// DeadlineTimer ends a fiber's wait. Its claim runs under the wheel's lock, which the owner takes to stop the timer: it
// meets this wait or none.
struct DeadlineTimer : Timer {
  explicit DeadlineTimer(FiberControl* owner) noexcept : Timer(&fired), fiber(owner) {}
  static void fired(Timer& timer) noexcept {
    static_cast<DeadlineTimer&>(timer).fiber->claim_and_wake(WakeReason::timed_out);
  }

  FiberControl* fiber;
};

// park suspends the calling fiber, armed and shown to its sources, until one of them, the deadline or a cancellation
// wakes it. The caller then takes itself out of the sources that did not win.
[[gnu::always_inline]] inline WakeReason park(FiberControl* self, WaitKind kind, std::int64_t object,
                                              Deadline deadline) noexcept {
  self->wait_kind.store(kind, std::memory_order_relaxed);
  self->wait_object.store(object, std::memory_order_relaxed);
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
  WakeReason park(Deadline deadline) noexcept;

 private:
  static void wake_thread(Waiter& waiter) noexcept;
  std::atomic<std::uint32_t> asleep_{1};
};

// error_of maps the reasons that are failures.
inline Error error_of(WakeReason reason) noexcept {
  switch (reason) {
    case WakeReason::timed_out:
      return {ErrorCode::timed_out};
    case WakeReason::closed:
      return {ErrorCode::closed};
    default:
      return {ErrorCode::cancelled};
  }
}

}  // namespace coir
