#include <coir/detail/nursery_base.h>

#include <iterator>

#include "wait/claimed_waiters.h"
#include "wait/park.h"

// Which nurseries a fiber has made, so that cancelling the fiber reaches their children.

namespace coir::detail {

namespace {

// The lists of nurseries that fibers have made are guarded by a few locks for all fibers. Locks are taken in the order:
// this, a nursery's, its scope's.
constinit Spinlock g_made_locks[8];

Spinlock& made_lock(const FiberControl* maker) noexcept {
  return g_made_locks[(reinterpret_cast<std::uintptr_t>(maker) >> 13) % std::size(g_made_locks)];
}

}  // namespace

// A fiber that is cancelled is marked before its list is read; here the mark is read after the list is written.
void NurseryBase::made() noexcept {
  FiberControl* const self = acting_fiber();
  if (self == nullptr) return;
  maker_id_ = self->id.load(std::memory_order_relaxed);
  if (self->shielded()) return;
  maker_ = self;
  {
    Locked hold(made_lock(self));
    next_made_ = self->nurseries;
    if (next_made_ != nullptr) next_made_->previous_made_ = this;
    self->nurseries = this;
  }
  if (self->cancelled()) cancel(self->cancel_reason.load(std::memory_order_acquire));
}

void NurseryBase::unmade() noexcept {
  if (maker_ == nullptr) return;
  Locked hold(made_lock(maker_));
  if (maker_->id.load(std::memory_order_relaxed) != maker_id_) return;  // it has ended, and its list with it
  if (next_made_ != nullptr) next_made_->previous_made_ = previous_made_;
  (previous_made_ != nullptr ? previous_made_->next_made_ : maker_->nurseries) = next_made_;
  maker_ = nullptr;
}

void NurseryBase::claim_all_made_by(FiberControl& fiber, std::uint64_t id, const char* reason,
                                    ClaimedWaiters& woken) noexcept {
  Locked hold(made_lock(&fiber));
  if (fiber.id.load(std::memory_order_acquire) != id) return;
  for (NurseryBase* each = fiber.nurseries; each != nullptr; each = each->next_made_) each->claim_all(reason, woken);
}

}  // namespace coir::detail

namespace coir {

Waiter* unlink_from_nursery(FiberControl* fiber) noexcept {
  return fiber->nursery->unlink_ended(fiber);
}

Waiter* end_held_in_nursery(FiberControl* fiber) noexcept {
  return fiber->nursery->end_held(fiber);
}

}  // namespace coir
