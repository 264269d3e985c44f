#include "scope/fiber_main.h"

#include <coir/detail/nursery_base.h>

#include "fiber/describe.h"
#include "scope/join.h"
#include "wait/park.h"

namespace coir {

void report_failure(const FiberControl* fiber) noexcept {
  if (fiber->nursery != nullptr) {
    fiber->nursery->fail(*fiber->failure, name_of(*fiber));
  } else {
    fiber->worker->scheduler().fail(*fiber->failure, name_of(*fiber));
  }
}

namespace {

// end_for_thread tells a joiner that is no fiber of the end.
[[gnu::noinline]] void end_for_thread(Waiter* joiner) noexcept {
  const bool visits = JoiningThread::is(*joiner);
  if (visits) door::enter_again();
  const Waiter::Claim claim = joiner->claim(WakeReason::joined);
  if (claim == Waiter::Claim::parked) joiner->wake();
  if (claim == Waiter::Claim::lost && visits) door::leave();
}

// end_owned is what end_fiber does for a nursery's child and for one that failed. It returns, with the join word
// locked, when a joiner waits, who takes both over.
void end_owned(FiberControl* self, const Error* failure) noexcept {
  // A cancelled fiber that returns `cancelled` has not failed.
  self->failure = failure;
  self->fails = failure != nullptr && !(*failure == ErrorCode::cancelled && is_cancelled(self));
  std::uint32_t join = self->join.load(std::memory_order_acquire);
  for (;;) {
    if (join == FiberControl::kDetached) {
      if (self->fails) report_failure(self);
      if (self->drop != nullptr) self->drop(self->storage);
      Worker::leave(self, Commit::owned, nullptr);
    }
    if (!self->join.compare_exchange_weak(join, FiberControl::kLocked, std::memory_order_acq_rel,
                                          std::memory_order_acquire)) {
      continue;
    }
    if (join != FiberControl::kWaiting) Worker::leave(self, Commit::owned, nullptr);
    if (self->nursery != nullptr) self->nursery->take(self, true);
    return;
  }
}

// end_fiber is the last thing that runs on a fiber's stack.
//
// join:   kOpen    -> kLocked -> kDone       nobody waits yet; the stack stays until the handle asks
//                             -> kFailed     the same, and the nursery still has the failure to answer for
//         kFailed  -> kLocked -> kDone       the handle or the nursery takes the failure over, whoever is first
//         kWaiting -> kLocked -> kDone       the joiner is claimed, and goes on in this fiber's place when it is a
//                                            fiber
//         kDetached                          the stack goes back to the pool
// kDone is set from the far side of the switch, when nobody stands on the stack any more. A thread that finds kLocked
// waits until it changes.
[[noreturn]] void end_fiber(FiberControl* self, const Error* failure) noexcept {
  if (self->mutexes_held != 0) [[unlikely]]
    report_held_mutexes(*self);
  std::uint32_t join = FiberControl::kWaiting;
  if (self->nursery != nullptr || failure != nullptr) [[unlikely]] {
    end_owned(self, failure);
  } else {
    join = self->join.load(std::memory_order_acquire);
    for (;;) {
      if (join == FiberControl::kDetached) {
        if (self->drop != nullptr) self->drop(self->storage);
        Worker::leave(self, Commit::ended, nullptr);
      }
      if (self->join.compare_exchange_weak(join, FiberControl::kLocked, std::memory_order_acq_rel,
                                           std::memory_order_acquire))
        break;
    }
  }
  FiberControl* joiner_next = nullptr;
  if (join == FiberControl::kWaiting) {
    Waiter* const joiner = self->joiner;
    // Under kLocked the joiner cannot leave its wait; see Waiter.
    if (!joiner->wakes_by(&wake_fiber)) [[unlikely]] {
      end_for_thread(joiner);
    } else if (joiner->claim(WakeReason::joined) == Waiter::Claim::parked) {
      const Scheduler& scheduler = self->worker->scheduler();
      if (!scheduler.migrate() && !scheduler.seeded()) {
        joiner_next = static_cast<FiberControl*>(joiner);
      } else {
        joiner->wake();
      }
    }
  }
  Worker::leave(self, Commit::handed_off, joiner_next);
}

}  // namespace

void fiber_main(void* message, void* argument) noexcept {
  auto* self = static_cast<FiberControl*>(argument);
  SanitizerContext::after_switch(self->sanitizer);
  self->worker->commit(message);
  const Error* const failure = self->run(self->storage);
  end_fiber(self, failure);
}

}  // namespace coir
