#include <coir/fiber.h>

#include <coir/budget.h>
#include <coir/detail/nursery_base.h>

#include <sched.h>

#include "schedule/errand.h"
#include "scope/join.h"
#include "wait/claimed_waiters.h"
#include "wait/owner.h"
#include "wait/park.h"

namespace coir {

namespace detail {

void cancel_claim(FiberControl* fiber, std::uint64_t id, const char* reason, ClaimedWaiters& woken) noexcept {
  std::uint64_t seen = fiber->cancelled_id.load(std::memory_order_seq_cst);
  // Before the mark, so that a reader of the mark finds a reason of this life. If two callers cancel at the same time,
  // either reason may be kept.
  if (seen != id && fiber->id.load(std::memory_order_acquire) == id)
    fiber->cancel_reason.store(reason, std::memory_order_release);
  do {
    if (fiber->id.load(std::memory_order_acquire) != id) return;
    // seq_cst pairs with Waiter::commit. If this fiber has just ended, the mark meets another one: it has the
    // wrong id and means nothing there.
  } while (seen != id && !fiber->cancelled_id.compare_exchange_weak(seen, id, std::memory_order_seq_cst));
  if (fiber->claim_ticket(WakeReason::cancelled, id) == Waiter::Claim::parked) woken.add(fiber);
  NurseryBase::claim_all_made_by(*fiber, id, reason, woken);
}

}  // namespace detail

std::expected<void, Error> FiberRef::cancel(const char* reason) const noexcept {
  std::expected<void, Error> outcome;
  if (by_worker([&] { outcome = cancel(reason); })) return outcome;
  const Visit run;
  if (!run || !alive()) return std::unexpected(Error{ErrorCode::stale});
  ClaimedWaiters woken;
  detail::cancel_claim(control_, id_, reason, woken);
  woken.wake();
  return {};
}

bool FiberRef::alive() const noexcept {
  if (control_ == nullptr || control_->id.load(std::memory_order_acquire) != id_) return false;
  const std::uint32_t join = control_->join.load(std::memory_order_acquire);
  return !ends(join);
}

bool Fiber::done() const noexcept {
  return control_ != nullptr && !alive();
}

FiberStatus Fiber::status() const noexcept {
  const Visit run;
  if (!run || control_ == nullptr || control_->id.load(std::memory_order_acquire) != id_) return FiberStatus::empty;
  if (alive()) {
    return control_->cancelled_id.load(std::memory_order_relaxed) == id_ ? FiberStatus::cancelling
                                                                         : FiberStatus::running;
  }
  // alive acquired the join word, before which end_owned wrote this.
  return control_->failure != nullptr ? FiberStatus::failed : FiberStatus::succeeded;
}

FiberRef current() noexcept {
  FiberControl* const self = running_fiber();
  return self == nullptr ? FiberRef() : FiberRef(self, self->id.load(std::memory_order_relaxed));
}

void yield() noexcept {
  if (FiberControl* const self = running_fiber(); self != nullptr) {
    Worker::yield(self);
  } else {
    sched_yield();
  }
}

void yield_to_events() noexcept {
  if (FiberControl* const self = running_fiber(); self != nullptr) {
    self->worker->look_around_next();
    Worker::yield(self);
  } else {
    sched_yield();
  }
}

std::expected<void, Error> sleep(std::chrono::nanoseconds span) noexcept {
  return sleep_until(Deadline::after(span));
}

std::expected<void, Error> sleep_until(Deadline deadline) noexcept {
  spend_budget();
  FiberControl* const self = running_fiber();
  if (self == nullptr) {
    if (this_worker() != nullptr) return std::unexpected(Error{ErrorCode::unsupported});
    if (deadline.is_never() && current_scope() == nullptr) return std::unexpected(Error{ErrorCode::invalid});
    ThreadWaiter thread;
    thread.arm();
    const Error error = error_of(thread.park(deadline));
    if (error.is_late()) return {};
    return std::unexpected(error);
  }
  if (is_cancelled(self)) return std::unexpected(error_of(WakeReason::cancelled));
  arm(self);
  const WakeReason reason = park(self, WaitKind::sleep, deadline.ns(), deadline);
  if (reason != WakeReason::timed_out || late_scope(self) != 0) return std::unexpected(error_of(reason));
  return {};
}

}  // namespace coir
