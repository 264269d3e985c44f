#include "scope/join.h"

#include <coir/budget.h>
#include <coir/detail/nursery_base.h>
#include <coir/fiber.h>

#include <utility>

#include "scope/fiber_main.h"
#include "wait/park.h"

namespace coir {

namespace {

// Ended is what becomes of the outcome of a fiber that has ended.
enum class Ended : std::uint8_t { done, failed, taken };

// take_ended waits out the few instructions between a fiber's last claim and the switch off its stack, on another
// worker, and takes the outcome of the fiber of that id. `failed`: nobody has taken the failure over, and the caller
// does now, with the word at kLocked. `taken`: another has it all.
Ended take_ended(FiberControl* fiber, std::uint64_t id) noexcept {
  for (SpinWait turn;; turn.pause()) {
    std::uint32_t join = fiber->join.load(std::memory_order_acquire);
    if (join == FiberControl::kTaken) return Ended::taken;
    const bool ended = join == FiberControl::kDone || join == FiberControl::kFailed;
    // kLocked keeps others away while the id is looked at, and the nursery from a failure: that takes it over itself when
    // it is left first.
    if (ended && fiber->join.compare_exchange_strong(join, FiberControl::kLocked, std::memory_order_acq_rel,
                                                     std::memory_order_relaxed)) [[likely]] {
      // Another joiner by the same handle may have taken the outcome, and the slot be a later fiber's.
      if (kManyWorkers && fiber->id.load(std::memory_order_relaxed) != id) [[unlikely]] {
        fiber->join.store(join, std::memory_order_release);
        return Ended::taken;
      }
      if (join == FiberControl::kFailed) return Ended::failed;
      fiber->join.store(FiberControl::kTaken, std::memory_order_release);
      return Ended::done;
    }
    if (kManyWorkers && fiber->id.load(std::memory_order_relaxed) != id) [[unlikely]]
      return Ended::taken;
  }
}

// take_over takes an ended fiber away from its nursery, for one that joins it after its end; false: another takes it.
bool take_over(FiberControl* fiber, std::uint64_t id) noexcept {
  const Ended ended = take_ended(fiber, id);
  if (ended == Ended::failed) [[unlikely]] {
    if (fiber->nursery != nullptr) fiber->nursery->take(fiber, false);
    fiber->join.store(FiberControl::kTaken, std::memory_order_release);
  }
  return ended != Ended::taken;
}

// await_taken waits for the end of the switch off the stack of a fiber whose outcome is the caller's.
void await_taken(const FiberControl* fiber) noexcept {
  // acquire pairs with the release in Worker::commit: the result is complete and the stack is left.
  for (SpinWait turn; fiber->join.load(std::memory_order_acquire) != FiberControl::kTaken;) turn.pause();
}

// visits_process tells whether the caller is a plain thread that visits the process's run. An isolate's thread is none
// before and behind its own run: the process may have no run at all.
bool visits_process() noexcept {
  return this_worker() == nullptr && Scheduler::isolated_here() == nullptr;
}

// await_told waits for the last touch of a node whose claimed waiter was not parked.
[[gnu::noinline]] void await_told(const detail::WaitNode& node) noexcept {
  // acquire pairs with the release in tell_waiting.
  for (SpinWait turn; !node.told.load(std::memory_order_acquire);) turn.pause();
}

// tell_of_detaching tells those that wait for a fiber that its handle is empty. Under kListing, which it ends.
[[gnu::noinline]] void tell_of_detaching(FiberControl* fiber) noexcept {
  const OutsideClaim outside;
  static_cast<void>(tell_waiting(fiber, false));
  detail::WaitNode* const told = std::exchange(fiber->waiting, nullptr);
  fiber->join.store(FiberControl::kDetached, std::memory_order_release);
  wake_told(told);
}

// stand_alone is stand_in_line where nobody else waits; false when somebody does, or the fiber has ended.
[[gnu::always_inline]] inline bool stand_alone(FiberControl* fiber, std::uint64_t id, detail::WaitNode& node) noexcept {
  std::uint32_t join = FiberControl::kOpen;
  if (!fiber->join.compare_exchange_strong(join, FiberControl::kListing, std::memory_order_acquire,
                                           std::memory_order_relaxed)) {
    return false;
  }
  const bool same = !kManyWorkers || fiber->id.load(std::memory_order_relaxed) == id;
  if (same) [[likely]]
    fiber->waiting = &node;
  fiber->join.store(same ? FiberControl::kWaiting : FiberControl::kOpen, std::memory_order_release);
  return same;
}

}  // namespace

std::expected<void, Error> Fiber::wait_ended(Deadline deadline) noexcept {
  spend_budget();
  FiberControl* const fiber = control_;
  if (fiber == nullptr) return std::unexpected(failure_);
  FiberControl* const self = running_fiber();
  if (kManyWorkers && self == nullptr && this_worker() == nullptr) [[unlikely]]
    return wait_outside(deadline);
  const std::uint64_t id = id_;
  // An empty handle's id is 0, as that of a free slot.
  if (id == 0 || fiber->id.load(std::memory_order_acquire) != id) return std::unexpected(Error{ErrorCode::stale});
  Error late = ErrorCode::stale;
  if (!ends(fiber->join.load(std::memory_order_acquire))) {
    if (self == nullptr) [[unlikely]]
      return std::unexpected(Error{ErrorCode::unsupported});
    if (is_cancelled(self)) return std::unexpected(error_of(WakeReason::cancelled));
    detail::WaitRound round(*self);
    detail::WaitNode node;
    node.round = &round;
    node.takes = true;
    arm(self);
    if (stand_alone(fiber, id, node) || stand_in_line(fiber, id, node)) {
      const WakeReason reason = park(self, WaitKind::join, static_cast<std::int64_t>(id), deadline);
      // From here on the handle may be gone: the first that waited takes the outcome, and may have.
      if (reason == WakeReason::joined) [[likely]] {
        if (!node.takes) return await_told(node), std::unexpected(Error{ErrorCode::stale});
        await_taken(fiber);
        return {};
      }
      late = error_of(reason);
      if (take_out_of_line(fiber, node) || fiber->id.load(std::memory_order_acquire) != id)
        return std::unexpected(late);
    } else {
      disarm(self);
    }
  }
  if (!take_over(fiber, id)) return std::unexpected(late);
  return {};
}

// wait_outside is wait_ended for a plain thread, which visits the run from its success until release. While it waits it
// is no visitor: the run may end before the fiber does.
std::expected<void, Error> Fiber::wait_outside(Deadline deadline) noexcept {
  FiberControl* const fiber = control_;
  const std::uint64_t id = id_;
  if (!door::enter()) return std::unexpected(Error{ErrorCode::stale});
  const auto refuse = [](Error error) {
    door::leave();
    return std::unexpected(error);
  };
  if (id == 0 || fiber->id.load(std::memory_order_acquire) != id) return refuse({ErrorCode::stale});
  Error late = ErrorCode::stale;
  JoiningThread thread;
  detail::WaitRound round(thread);
  detail::WaitNode node;
  node.round = &round;
  node.takes = true;
  thread.arm();
  if (stand_in_line(fiber, id, node)) {
    door::leave();
    const WakeReason reason = thread.park(deadline);
    if (reason == WakeReason::joined) {
      if (!node.takes) return await_told(node), refuse(late);
      await_taken(fiber);
      return {};
    }
    late = error_of(reason);
    // A fiber on whose list the node stands keeps its run.
    if (take_out_of_line(fiber, node) || !door::enter()) return std::unexpected(late);
    if (fiber->id.load(std::memory_order_acquire) != id) return refuse(late);
  }
  if (!take_over(fiber, id)) return refuse(late);
  return {};
}

[[gnu::flatten]] std::expected<void, Error> Fiber::join(Deadline deadline) noexcept {
  if (auto ended = wait_ended(deadline); !ended) return ended;
  std::expected<void, Error> outcome;
  if (control_->failure != nullptr) [[unlikely]]
    outcome = std::unexpected(*control_->failure);
  if (control_->code->drop != nullptr) control_->code->drop(coir::storage_of(control_));
  release();
  return outcome;
}

void Fiber::abandon() noexcept {
  if (control_ == nullptr) return;
  const bool visits = kManyWorkers && visits_process();
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
  for (SpinWait turn; !ends(join);) {
    const bool waited_for = join == FiberControl::kWaiting;
    if (join == FiberControl::kListing) {
      turn.pause();
      join = fiber->join.load(std::memory_order_acquire);
    } else if (fiber->join.compare_exchange_weak(join, waited_for ? FiberControl::kListing : FiberControl::kDetached,
                                                 std::memory_order_acq_rel, std::memory_order_acquire)) {
      control_ = nullptr;
      id_ = 0;
      if (waited_for) tell_of_detaching(fiber);
      return false;
    }
  }
  const Ended ended = take_ended(fiber, id_);
  if (ended == Ended::taken) {
    control_ = nullptr;
    id_ = 0;
    return false;
  }
  if (ended == Ended::failed) {
    if (fiber->nursery != nullptr) {
      fiber->nursery->drop_failed(fiber);
    } else {
      report_failure(fiber);
    }
  }
  if (fiber->code->drop != nullptr) fiber->code->drop(coir::storage_of(fiber));
  release();
  return true;
}

void* Fiber::storage() const noexcept {
  return coir::storage_of(control_);
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
    if (kManyWorkers && visits_process()) door::leave();
  }
}

}  // namespace coir
