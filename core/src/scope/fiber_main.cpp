#include "scope/fiber_main.h"

#include <coir/detail/nursery_base.h>
#include <coir/fiber.h>

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

// note_failure sets what becomes of an error in the result. A cancelled fiber that returns `cancelled` has not failed.
void note_failure(FiberControl* self, const Error* failure) noexcept {
  self->failure = failure;
  self->fails = failure != nullptr && !(*failure == ErrorCode::cancelled && is_cancelled(self));
}

// lock_join keeps others from beginning to wait, and returns how the word was: kOpen, kWaiting or kDetached, which stays
// as it is.
[[gnu::always_inline]] inline std::uint32_t lock_join(FiberControl* self) noexcept {
  std::uint32_t join = self->join.load(std::memory_order_acquire);
  for (SpinWait turn;;) {
    if (join == FiberControl::kDetached) return join;
    if (join == FiberControl::kListing) {
      turn.pause();
      join = self->join.load(std::memory_order_acquire);
    } else if (self->join.compare_exchange_weak(join, FiberControl::kLocked, std::memory_order_acq_rel,
                                                std::memory_order_acquire)) {
      return join;
    }
  }
}

// next_of takes the first of those that are to be woken off the list, if it is a fiber that may go on in this one's
// place.
inline FiberControl* next_of(FiberControl* self) noexcept {
  detail::WaitNode* const first = self->waiting;
  const Scheduler& scheduler = self->worker->scheduler();
  if (first == nullptr || !first->round->waiter->wakes_by(&wake_fiber) || scheduler.migrate() || scheduler.seeded()) {
    return nullptr;
  }
  self->waiting = first->next;
  return static_cast<FiberControl*>(first->round->waiter);
}

// tell_one is tell_waiting and next_of where one fiber waits alone, to take the outcome; false where it is not so.
[[gnu::always_inline]] inline bool tell_one(FiberControl* self, bool& taken, FiberControl*& next) noexcept {
  detail::WaitNode* const node = self->waiting;
  if (node->next != nullptr || !node->takes) return false;
  Waiter* const joiner = node->round->waiter;
  const Scheduler& scheduler = self->worker->scheduler();
  if (!joiner->wakes_by(&wake_fiber) || scheduler.migrate() || scheduler.seeded()) [[unlikely]]
    return false;
  self->waiting = nullptr;
  const Waiter::Claim won = joiner->claim(WakeReason::joined);
  taken = won != Waiter::Claim::lost;
  // One that was claimed armed stays in await_taken: the node is still there.
  if (won == Waiter::Claim::parked) {
    next = static_cast<FiberControl*>(joiner);
  } else {
    node->told.store(true, std::memory_order_release);
  }
  return true;
}

// end_fiber is the last thing that runs on a fiber's stack; join.h describes the join word.
[[noreturn]] void end_fiber(FiberControl* self, const Error* failure) noexcept {
  if (self->mutexes_held != 0) [[unlikely]]
    report_held_mutexes(*self);
  const bool owned = self->nursery != nullptr || failure != nullptr;
  if (owned) [[unlikely]]
    note_failure(self, failure);
  const std::uint32_t join = lock_join(self);
  if (join == FiberControl::kDetached) {
    if (owned && self->fails) report_failure(self);
    if (self->code->drop != nullptr) self->code->drop(storage_of(self));
    Worker::leave(self, owned ? Commit::owned : Commit::ended, nullptr);
  }
  bool taken = false;
  FiberControl* next = nullptr;
  if (join == FiberControl::kWaiting && !tell_one(self, taken, next)) {
    taken = tell_waiting(self, true);
    next = next_of(self);
  }
  // The caller that takes the outcome becomes responsible for the failure.
  if (taken && self->nursery != nullptr) [[unlikely]]
    self->nursery->take(self, true);
  if (self->waiting == nullptr && (taken || !owned)) [[likely]]
    Worker::leave(self, taken ? Commit::taken : Commit::handed_off, next);
  if (!owned) self->fails = false;
  self->taken = taken;
  Worker::leave(self, Commit::owned, next);
}

}  // namespace

void fiber_main(void* message, void* argument) noexcept {
  auto* self = static_cast<FiberControl*>(argument);
  SanitizerContext::after_switch(self->sanitizer);
  self->worker->commit(message);
  const Error* const failure = self->code->run(storage_of(self));
  end_fiber(self, failure);
}

}  // namespace coir
