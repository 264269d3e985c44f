#include <coir/nursery_base.h>

#include <sched.h>

#include "park.h"

namespace coir::detail {

// Spawner waits for a place at the limit, first come first served. It lies on the stack of who waits.
struct NurseryBase::Spawner {
  Waiter* waiter;
  Spawner* next = nullptr;
};

namespace {

// wake_all wakes fibers that were claimed while they were parked. Such a fiber is in no queue, so that its link of the
// queues strings them together until the lock is gone: no fiber is made runnable under it.
void wake_all(FiberControl* woken) noexcept {
  while (woken != nullptr) {
    FiberControl* const next = woken->next;
    woken->wake();
    woken = next;
  }
}

}  // namespace

void NurseryBase::enter() noexcept {
  detail::enter(scope_, Deadline::never());
  entered_ = true;
}

void NurseryBase::adopt() noexcept {
  detail::adopt(scope_);
}

void NurseryBase::retreat() noexcept {
  if (entered_) detail::leave(scope_);
  entered_ = false;
}

std::expected<void, Error> NurseryBase::admit(bool wait) noexcept {
  Caller caller;
  Spawner spawner{};
  {
    Locked hold(lock_);
    if (closed_) return std::unexpected(Error{ErrorCode::closed});
    const std::uint32_t running = running_.load(std::memory_order_relaxed);
    if (limit_ == 0 || (running < limit_ && first_spawner_ == nullptr)) {
      running_.store(running + 1, std::memory_order_relaxed);
      return {};
    }
    if (!wait) return std::unexpected(Error{ErrorCode::limit});
    if (!caller.may_wait()) return std::unexpected(Error{ErrorCode::unsupported});
    if (caller.is_cancelled()) return std::unexpected(error_of(WakeReason::cancelled));
    spawner.waiter = caller.arm();
    *last_spawner_ = &spawner;
    last_spawner_ = &spawner.next;
  }
  const WakeReason reason = caller.park(WaitKind::admission, limit_, Deadline::never());
  if (reason == WakeReason::ready) return {};
  Locked hold(lock_);
  for (Spawner** link = &first_spawner_; *link != nullptr; link = &(*link)->next) {
    if (*link != &spawner) continue;
    *link = spawner.next;
    if (last_spawner_ == &spawner.next) last_spawner_ = link;
    break;
  }
  return std::unexpected(error_of(reason));
}

// free_place hands a child's place to the next spawner, and returns whom to wake for it.
Waiter* NurseryBase::free_place() noexcept {
  while (first_spawner_ != nullptr) {
    Spawner* const spawner = first_spawner_;
    first_spawner_ = spawner->next;
    if (first_spawner_ == nullptr) last_spawner_ = &first_spawner_;
    // One whose wait something else has ended takes itself for refused; under the lock it cannot have gone.
    switch (spawner->waiter->claim(WakeReason::ready)) {
      case Waiter::Claim::parked:
        return spawner->waiter;
      case Waiter::Claim::armed:
        return nullptr;
      case Waiter::Claim::lost:
        break;
    }
  }
  running_.store(running_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
  return nullptr;
}

// tell_leaver claims who waits for the last child, if that has gone.
Waiter* NurseryBase::tell_leaver() noexcept {
  if (leaver_ == nullptr || !is_empty()) return nullptr;
  return leaver_->claim(WakeReason::joined) == Waiter::Claim::parked ? leaver_ : nullptr;
}

void NurseryBase::dismiss() noexcept {
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
  child->elder = nullptr;
  child->younger = children_;
  if (children_ != nullptr) children_->elder = child;
  children_ = child;
}

void NurseryBase::unlink(FiberControl* child) noexcept {
  (child->elder != nullptr ? child->elder->younger : children_) = child->younger;
  if (child->younger != nullptr) child->younger->elder = child->elder;
  child->nursery = nullptr;
}

Waiter* NurseryBase::unlink_ended(FiberControl* child) noexcept {
  Locked hold(lock_);
  unlink(child);
  Waiter* const woken = free_place();
  return woken != nullptr ? woken : tell_leaver();
}

Waiter* NurseryBase::settle_held(FiberControl* child) noexcept {
  FiberControl* cancelled = nullptr;
  Waiter* woken;
  {
    Locked hold(lock_);
    std::uint32_t join = FiberControl::kDone;
    if (child->fails && !leaving_) {
      join = FiberControl::kFailed;
    } else {
      if (child->fails) cancelled = fail_locked(*child->failure);
      unlink(child);
    }
    woken = free_place();
    // release pairs with the acquire of the handle's holder, to whom the child belongs from here on.
    child->join.store(join, std::memory_order_release);
    if (woken == nullptr) woken = tell_leaver();
  }
  wake_all(cancelled);
  return woken;
}

void NurseryBase::take(FiberControl* child, bool running) noexcept {
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
  FiberControl* cancelled;
  Waiter* woken;
  {
    Locked hold(lock_);
    cancelled = fail_locked(*child->failure);
    unlink(child);
    woken = tell_leaver();
  }
  wake_all(cancelled);
  if (woken != nullptr) woken->wake();
}

// cancel_locked marks the scope and returns whom to wake. A wait that begins from now on sees the mark, see
// begin_scoped_wait; one behind a shield bears another ticket and is let be.
FiberControl* NurseryBase::cancel_locked(const char* reason) noexcept {
  if (scope_.cancelled.load(std::memory_order_relaxed)) return nullptr;
  scope_.reason.store(reason, std::memory_order_release);
  scope_.cancelled.store(true, std::memory_order_seq_cst);
  FiberControl* woken = nullptr;
  const auto claim = [&woken](FiberControl* fiber, std::uint64_t ticket) {
    if (fiber->claim_ticket(WakeReason::cancelled, ticket) != Waiter::Claim::parked) return;
    fiber->next = woken;
    woken = fiber;
  };
  for (FiberControl* child = children_; child != nullptr; child = child->younger) {
    claim(child, child->id.load(std::memory_order_relaxed));
  }
  // The owner cannot have left the scope: there is a child, or the owner itself calls.
  if (entered_ && scope_.owner != nullptr) claim(scope_.owner, scope_.ticket);
  return woken;
}

FiberControl* NurseryBase::fail_locked(Error error) noexcept {
  if (!failed_) {
    failed_ = true;
    failure_ = error;
  }
  return cancel_locked("a sibling failed");
}

void NurseryBase::cancel(const char* reason) noexcept {
  FiberControl* woken;
  {
    Locked hold(lock_);
    woken = cancel_locked(reason);
  }
  wake_all(woken);
}

void NurseryBase::fail(Error error) noexcept {
  FiberControl* woken;
  {
    Locked hold(lock_);
    woken = fail_locked(error);
  }
  wake_all(woken);
}

// collect_failed takes over the failures of children that ended while their handles are held.
void NurseryBase::collect_failed() noexcept {
  FiberControl* woken = nullptr;
  {
    Locked hold(lock_);
    leaving_ = true;
    for (FiberControl *child = children_, *next; child != nullptr; child = next) {
      next = child->younger;
      std::uint32_t failed = FiberControl::kFailed;
      // kLocked keeps the handle away. Where it is first, the child leaves the list when it gets the lock.
      if (!child->join.compare_exchange_strong(failed, FiberControl::kLocked, std::memory_order_acq_rel,
                                               std::memory_order_relaxed))
        continue;
      FiberControl* const more = fail_locked(*child->failure);
      if (more != nullptr) woken = more;  // only the first failure cancels
      unlink(child);
      child->join.store(FiberControl::kDone, std::memory_order_release);
    }
  }
  wake_all(woken);
}

std::expected<void, Error> NurseryBase::wait_empty(Deadline deadline, bool close) noexcept {
  for (;;) {
    Caller caller;
    std::uint32_t running;
    {
      Locked hold(lock_);
      if (is_empty()) {
        closed_ = closed_ || close;
        return {};
      }
      if (!caller.may_wait()) return std::unexpected(Error{ErrorCode::unsupported});
      if (caller.is_cancelled()) return std::unexpected(error_of(WakeReason::cancelled));
      if (leaver_ != nullptr) return std::unexpected(Error{ErrorCode::busy});
      running = running_.load(std::memory_order_relaxed);
      leaver_ = caller.arm();
    }
    const WakeReason reason = caller.park(WaitKind::nursery, running, deadline);
    {
      Locked hold(lock_);
      leaver_ = nullptr;
    }
    if (reason != WakeReason::joined) return std::unexpected(error_of(reason));
  }
}

std::expected<void, Error> NurseryBase::wait(Deadline deadline) noexcept {
  return wait_empty(deadline, false);
}

std::expected<void, Error> NurseryBase::leave() noexcept {
  collect_failed();
  std::expected<void, Error> waited = wait_empty(Deadline::never(), true);
  if (!waited) {
    cancel("the nursery is left");
    Scope shield;
    enter_shield(shield, Deadline::never());
    static_cast<void>(wait_empty(Deadline::never(), true));
    detail::leave(shield);
  }
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
