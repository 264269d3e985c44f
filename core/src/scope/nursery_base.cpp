#include <coir/detail/nursery_base.h>

#include <coir/budget.h>

#include "fiber/describe.h"
#include "schedule/errand.h"
#include "wait/claimed_waiters.h"
#include "wait/owner.h"
#include "wait/park.h"
#include "wait/wait_round.h"

namespace coir::detail {

void NurseryBase::enter(Deadline deadline) noexcept {
  detail::enter(scope_, deadline);
  show(scope_);
  entered_ = true;
  made();
}

void NurseryBase::adopt() noexcept {
  detail::adopt(scope_);
  show(scope_);
  made();
}

void NurseryBase::retreat() noexcept {
  if (entered_) detail::leave(scope_);
  entered_ = false;
}

bool NurseryBase::holds_child() const noexcept {
  const FiberControl* const self = running_fiber();
  return self != nullptr && self->nursery == this;
}

bool NurseryBase::holds_own_child() const noexcept {
  return holds_child() && running_fiber()->parent_id.load(std::memory_order_relaxed) == maker_id_;
}

std::expected<void, Error> NurseryBase::admit(bool wait) noexcept {
  spend_budget();
  lock_.lock();
  const std::uint32_t running = running_.load(std::memory_order_relaxed);
  Error refused;
  if (closed_) {
    refused = ErrorCode::closed;
  } else if (limit_ == 0 || (running < limit_ && spawners_.empty())) {
    running_.store(running + 1, std::memory_order_relaxed);
    lock_.unlock();
    return {};
  } else if (const bool inside = holds_child(); wait && inside && all_inside(spawners_, running - 1)) {
    refused = ErrorCode::deadlock;
  } else if (wait) {
    WaitNode node;
    node.inside = inside;
    return wait_in(lock_, spawners_, node, {WaitKind::admission, limit_}, Deadline::never());
  } else {
    refused = ErrorCode::limit;
  }
  lock_.unlock();
  return std::unexpected(refused);
}

// free_place hands a child's place to the next spawner, and returns whom to wake for it.
Waiter* NurseryBase::free_place() noexcept {
  if (WaitNode* const next = take_first(spawners_); next != nullptr) return tell_winner(*next);
  running_.store(running_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
  return nullptr;
}

// tell_leaver claims who waits for the last child, if that has ended.
Waiter* NurseryBase::tell_leaver() noexcept {
  if (leaver_ == nullptr || running_.load(std::memory_order_relaxed) != 0) return nullptr;
  return leaver_->claim(WakeReason::joined) == Waiter::Claim::parked ? leaver_ : nullptr;
}

void NurseryBase::dismiss() noexcept {
  const OutsideClaim outside;
  Waiter* woken;
  {
    Locked hold(lock_);
    woken = free_place();
    if (woken == nullptr) woken = tell_leaver();
  }
  if (woken != nullptr) woken->wake();
}

void NurseryBase::link(FiberControl* child) noexcept {
  Locked hold(lock_);
  children_.add(*child);
}

void NurseryBase::unlink(FiberControl* child) noexcept {
  children_.remove(*child);
  child->nursery = nullptr;
}

Waiter* NurseryBase::unlink_ended(FiberControl* child) noexcept {
  Locked hold(lock_);
  unlink(child);
  Waiter* const woken = free_place();
  return woken != nullptr ? woken : tell_leaver();
}

Waiter* NurseryBase::end_held(FiberControl* child) noexcept {
  ClaimedWaiters cancelled;
  Waiter* woken;
  {
    Locked hold(lock_);
    std::uint32_t join = FiberControl::kDone;
    if (child->fails && !(leaving_ && child->parent_id.load(std::memory_order_relaxed) == maker_id_)) {
      join = FiberControl::kFailed;
    } else {
      if (child->fails) fail_locked(*child->failure, name_of(*child), cancelled);
      unlink(child);
    }
    woken = free_place();
    // release pairs with the acquire of the handle's holder, to whom the child belongs from here on.
    child->join.store(join, std::memory_order_release);
    if (woken == nullptr) woken = tell_leaver();
  }
  cancelled.wake();
  return woken;
}

void NurseryBase::take(FiberControl* child, bool running) noexcept {
  const OutsideClaim outside;
  Waiter* woken = nullptr;
  {
    Locked hold(lock_);
    unlink(child);
    if (running) woken = free_place();
    if (woken == nullptr) woken = tell_leaver();
  }
  if (woken != nullptr) woken->wake();
}

void NurseryBase::drop_failed(FiberControl* child) noexcept {
  ClaimedWaiters cancelled;
  Waiter* woken;
  {
    Locked hold(lock_);
    fail_locked(*child->failure, name_of(*child), cancelled);
    unlink(child);
    woken = tell_leaver();
  }
  cancelled.wake();
  if (woken != nullptr) woken->wake();
}

// A wait behind a shield is armed with another ticket, and goes on.
void NurseryBase::claim_children_locked(ClaimedWaiters& woken) noexcept {
  for (FiberControl* child = children_.first(); child != nullptr; child = child->younger) {
    if (child->claim_ticket(WakeReason::cancelled, child->id.load(std::memory_order_relaxed)) == Waiter::Claim::parked)
      woken.add(child);
  }
}

void claim_children_of(Scope& scope, ClaimedWaiters& woken) noexcept {
  if (scope.nursery != nullptr && &scope.nursery->scope() == &scope) scope.nursery->claim_children(woken);
}

void NurseryBase::claim_children(ClaimedWaiters& woken) noexcept {
  Locked hold(lock_);
  claim_children_locked(woken);
}

// cancel_locked marks the scope and adds whom to wake. A wait that begins from now on sees the mark, see
// begin_scoped_wait.
void NurseryBase::cancel_locked(const char* reason, ClaimedWaiters& woken) noexcept {
  if (scope_.cancelled.load(std::memory_order_relaxed)) return;
  mark(scope_, reason);
  claim_children_locked(woken);
  {
    Locked hold(scope_.lock);
    claim_below(scope_, woken);
  }
  // The owner cannot have left the scope: there is a child, or the owner itself calls.
  if (entered_) claim_owner(scope_, woken);
}

void NurseryBase::fail_locked(Error error, const FiberName& whose, ClaimedWaiters& woken) noexcept {
  if (!failed_) {
    failed_ = true;
    failure_ = error;
    first_failed_ = whose;
  }
  cancel_locked("a sibling failed", woken);
}

void NurseryBase::cancel(const char* reason) noexcept {
  if (by_worker([=, this] { cancel(reason); })) return;
  ClaimedWaiters woken;
  claim_all(reason, woken);
  woken.wake();
}

void NurseryBase::claim_all(const char* reason, ClaimedWaiters& woken) noexcept {
  Locked hold(lock_);
  cancel_locked(reason, woken);
}

void NurseryBase::fail(Error error, const FiberName& whose) noexcept {
  ClaimedWaiters woken;
  {
    Locked hold(lock_);
    fail_locked(error, whose, woken);
  }
  woken.wake();
}

// collect_failed takes over the failures of children that ended while their handles are held: of those that the owner
// has spawned, who holds the handles and awaits them no more, or of all.
void NurseryBase::collect_failed(bool all, ClaimedWaiters& woken) noexcept {
  for (FiberControl *child = children_.first(), *next; child != nullptr; child = next) {
    next = child->younger;
    if (!all && child->parent_id.load(std::memory_order_relaxed) != maker_id_) continue;
    std::uint32_t failed = FiberControl::kFailed;
    // kLocked keeps the handle away. If it is first, the child leaves the list when it gets the lock.
    if (!child->join.compare_exchange_strong(failed, FiberControl::kLocked, std::memory_order_acq_rel,
                                             std::memory_order_relaxed))
      continue;
    fail_locked(*child->failure, name_of(*child), woken);
    unlink(child);
    child->join.store(FiberControl::kDone, std::memory_order_release);
  }
}

std::expected<void, Error> NurseryBase::wait_empty() noexcept {
  spend_budget();
  for (;;) {
    Caller caller;
    std::uint32_t running;
    ClaimedWaiters woken;  // ends without the lock: it may make a worker look again
    {
      Locked hold(lock_);
      running = running_.load(std::memory_order_relaxed);
      // No fiber is left to await a failed child.
      if (running == 0) collect_failed(true, woken);
      if (woken.empty()) {
        if (running == 0 && children_.empty()) {
          closed_ = true;
          return {};
        }
        if (!caller.may_wait()) return std::unexpected(Error{ErrorCode::unsupported});
        if (caller.is_cancelled()) return std::unexpected(error_of(WakeReason::cancelled));
        if (leaver_ != nullptr) return std::unexpected(Error{ErrorCode::busy});
        leaver_ = caller.arm();
      }
    }
    // The failure has cancelled children of groups and nurseries below. They are woken, and it is looked again.
    if (!woken.empty()) {
      woken.wake();
      continue;
    }
    const WakeReason reason = caller.park(WaitKind::nursery, running, Deadline::never());
    {
      Locked hold(lock_);
      leaver_ = nullptr;
    }
    if (reason != WakeReason::joined) return std::unexpected(error_of(reason));
  }
}

std::expected<void, Error> NurseryBase::leave() noexcept {
  ClaimedWaiters woken;
  {
    Locked hold(lock_);
    leaving_ = true;
    collect_failed(false, woken);
  }
  woken.wake();
  std::expected<void, Error> waited = wait_empty();
  if (!waited) {
    // A deadline that the children are under as well ends their waits by itself, and tells them so.
    const Error by = waited.error();
    if (by != ErrorCode::timed_out || by.scope != scope_.deadline_id) cancel("the nursery is left");
    Scope shield;
    enter_shield(shield, Deadline::never());
    static_cast<void>(wait_empty());
    detail::leave(shield);
  }
  hide(scope_);
  unmade();
  Locked hold(lock_);
  if (failed_) {
    failed_ = false;
    return std::unexpected(failure_);
  }
  // Its own cancellation has done what it was asked to; one from outside is told.
  if (!waited && waited.error().scope == scope_.id) return {};
  return waited;
}

}  // namespace coir::detail
