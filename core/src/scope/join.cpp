#include "scope/join.h"

#include <coir/budget.h>
#include <coir/detail/nursery_base.h>
#include <coir/fiber.h>

#include "scope/fiber_main.h"
#include "wait/park.h"

namespace coir {

namespace {

// take_ended waits out the few instructions between a fiber's last claim and the switch off its stack, on another
// worker. True: it has failed, nobody has taken the failure over, and the caller does now.
bool take_ended(FiberControl* fiber) noexcept {
  for (SpinWait turn;; turn.pause()) {
    std::uint32_t join = fiber->join.load(std::memory_order_acquire);
    if (join == FiberControl::kDone) [[likely]]
      return false;
    // kLocked keeps its nursery away: that takes the failure over itself when it is left first.
    if (join == FiberControl::kFailed &&
        fiber->join.compare_exchange_strong(join, FiberControl::kLocked, std::memory_order_acq_rel,
                                            std::memory_order_relaxed)) {
      return true;
    }
  }
}

// take_over takes an ended fiber away from its nursery, for who joins it.
void take_over(FiberControl* fiber) noexcept {
  if (take_ended(fiber)) [[unlikely]] {
    if (fiber->nursery != nullptr) fiber->nursery->take(fiber, false);
  }
}

}  // namespace

bool open_to_waiting(FiberControl* fiber, Waiter* joiner) noexcept {
  fiber->joiner = joiner;
  std::uint32_t open = FiberControl::kOpen;
  // release publishes `joiner` to end_fiber.
  return fiber->join.compare_exchange_strong(open, FiberControl::kWaiting, std::memory_order_acq_rel,
                                             std::memory_order_acquire);
}

bool leave_joining(FiberControl* fiber) noexcept {
  std::uint32_t join = FiberControl::kWaiting;
  if (fiber->join.compare_exchange_strong(join, FiberControl::kOpen, std::memory_order_acq_rel,
                                          std::memory_order_acquire)) {
    return true;
  }
  for (SpinWait turn; fiber->join.load(std::memory_order_acquire) == FiberControl::kLocked;) turn.pause();
  return false;
}

std::expected<void, Error> Fiber::wait_ended(Deadline deadline) noexcept {
  spend_budget();
  FiberControl* const fiber = control_;
  if (fiber == nullptr) return std::unexpected(failure_);
  FiberControl* const self = running_fiber();
  if (kManyWorkers && self == nullptr && this_worker() == nullptr) [[unlikely]]
    return wait_outside(deadline);
  if (fiber->id.load(std::memory_order_acquire) != id_) return std::unexpected(Error{ErrorCode::stale});
  const std::uint32_t join = fiber->join.load(std::memory_order_acquire);
  if (join == FiberControl::kWaiting) return std::unexpected(Error{ErrorCode::busy});
  WakeReason reason = WakeReason::joined;
  if (join == FiberControl::kOpen) {
    if (self == nullptr) [[unlikely]]
      return std::unexpected(Error{ErrorCode::unsupported});
    if (is_cancelled(self)) return std::unexpected(error_of(WakeReason::cancelled));
    arm(self);
    if (open_to_waiting(fiber, self)) reason = park(self, WaitKind::join, static_cast<std::int64_t>(id_), deadline);
    std::uint32_t waiting = FiberControl::kWaiting;
    if (reason != WakeReason::joined &&
        fiber->join.compare_exchange_strong(waiting, FiberControl::kOpen, std::memory_order_acq_rel,
                                            std::memory_order_acquire)) {
      return std::unexpected(error_of(reason));
    }
  }
  take_over(fiber);
  return {};
}

// wait_outside is wait_ended for a plain thread, which visits the run from its success until release. While it waits it
// is no visitor: the run may end before the fiber does.
std::expected<void, Error> Fiber::wait_outside(Deadline deadline) noexcept {
  FiberControl* const fiber = control_;
  if (!door::enter()) return std::unexpected(Error{ErrorCode::stale});
  const auto refuse = [](Error error) {
    door::leave();
    return std::unexpected(error);
  };
  if (fiber->id.load(std::memory_order_acquire) != id_) return refuse({ErrorCode::stale});
  const std::uint32_t join = fiber->join.load(std::memory_order_acquire);
  if (join == FiberControl::kWaiting) return refuse({ErrorCode::busy});
  JoiningThread thread;
  thread.arm();
  if (join == FiberControl::kOpen && open_to_waiting(fiber, &thread)) {
    door::leave();
    if (const WakeReason reason = thread.park(deadline); reason != WakeReason::joined) {
      const Error error = error_of(reason);
      if (!door::enter()) return std::unexpected(error);
      if (fiber->id.load(std::memory_order_acquire) != id_ || leave_joining(fiber)) return refuse(error);
    }
  }
  take_over(fiber);
  return {};
}

[[gnu::flatten]] std::expected<void, Error> Fiber::join(Deadline deadline) noexcept {
  if (auto ended = wait_ended(deadline); !ended) return ended;
  std::expected<void, Error> outcome;
  if (control_->failure != nullptr) [[unlikely]]
    outcome = std::unexpected(*control_->failure);
  if (control_->drop != nullptr) control_->drop(control_->storage);
  release();
  return outcome;
}

void Fiber::abandon() noexcept {
  if (control_ == nullptr) return;
  const bool visits = kManyWorkers && this_worker() == nullptr;
  if (visits && !door::enter()) {  // a handle that outlives its run
    control_ = nullptr;
    return;
  }
  if (!let_go() && visits) door::leave();
}

// let_go drops the handle; true when it has released the fiber.
bool Fiber::let_go() noexcept {
  FiberControl* const fiber = control_;
  if (fiber->id.load(std::memory_order_acquire) != id_) {  // a handle that has outlived its run
    control_ = nullptr;
    return false;
  }
  std::uint32_t join = FiberControl::kOpen;
  if (fiber->join.compare_exchange_strong(join, FiberControl::kDetached, std::memory_order_acq_rel,
                                          std::memory_order_acquire)) {
    control_ = nullptr;
    id_ = 0;
    return false;
  }
  if (take_ended(fiber)) {
    if (fiber->nursery != nullptr) {
      fiber->nursery->drop_failed(fiber);
    } else {
      report_failure(fiber);
    }
  }
  if (fiber->drop != nullptr) fiber->drop(fiber->storage);
  release();
  return true;
}

void* Fiber::storage() const noexcept {
  return control_->storage;
}

// release hands an ended fiber's stack to the pool of whoever joined it, and ends a plain thread's visit.
void Fiber::release() noexcept {
  FiberControl* const fiber = std::exchange(control_, nullptr);
  id_ = 0;
  failure_ = {ErrorCode::stale};
  fiber->id.store(0, std::memory_order_release);
  fiber->state.store(FiberControl::State::free, std::memory_order_relaxed);
  if (Worker* const worker = this_worker(); worker != nullptr) {
    worker->stacks().release(worker->scheduler().stacks, fiber);
  } else {
    fiber->worker->scheduler().stacks.arena(fiber->stack_class).cool(fiber);
    if constexpr (kManyWorkers) door::leave();
  }
}

}  // namespace coir
