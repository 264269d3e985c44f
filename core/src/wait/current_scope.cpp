#include "wait/current_scope.h"

#include <coir/detail/fatal.h>

#include "schedule/errand.h"
#include "wait/claimed_waiters.h"
#include "wait/owner.h"
#include "wait/park.h"

namespace coir {

namespace {

constinit thread_local detail::Scope* t_current_scope = nullptr;
constinit thread_local std::uint16_t t_late = 0;
constinit thread_local ThreadPlace t_place;

}  // namespace

[[gnu::noinline]] detail::Scope*& current_scope() noexcept {
  FiberControl* const self = acting_fiber();
  return self != nullptr ? self->current_scope : t_current_scope;
}

namespace {

// asking_scope is the first scope with a before_wait that is in force, from the innermost on, if `self` owns it, or null
// a plain thread; else null.
detail::Scope* asking_scope(detail::Scope* scope, const FiberControl* self) noexcept {
  while (scope != nullptr && scope->before_wait == nullptr) scope = scope->shield ? nullptr : scope->outer;
  return scope != nullptr && scope->owner == self ? scope : nullptr;
}

// ended_before_wait asks that scope whether the wait ends before it begins.
bool ended_before_wait(FiberControl* self) noexcept {
  detail::Scope* const scope = asking_scope(self->current_scope, self);
  if (scope == nullptr) return false;
  const char* const reason = scope->before_wait(*scope);
  // If the claim is lost, the event that the wait is for has come meanwhile.
  if (reason == nullptr || self->claim(WakeReason::cancelled) == Waiter::Claim::lost) return false;
  detail::cancel(*scope, reason);
  return true;
}

}  // namespace

ScopedWork::ScopedWork(FiberControl* self) noexcept
    : scope_(self != nullptr ? asking_scope(self->current_scope, self) : nullptr) {
  if (scope_ != nullptr && (scope_->around_work == nullptr || !scope_->around_work(*scope_, true))) scope_ = nullptr;
}

ScopedWork::~ScopedWork() {
  if (scope_ != nullptr) static_cast<void>(scope_->around_work(*scope_, false));
}

bool begin_scoped_wait(FiberControl* self, Deadline& deadline) noexcept {
  self->late = lower(self->current_scope, deadline);
  // The word was armed before; the fence pairs with the seq_cst mark and claim in cancel: one of the two sees the
  // other.
  if constexpr (kManyWorkers) full_fence();
  WakeReason reason;
  if (cancelled_scope(self->current_scope) != nullptr) {
    reason = WakeReason::cancelled;
  } else if (self->late != 0 && deadline.passed()) {
    reason = WakeReason::timed_out;
  } else {
    return !ended_before_wait(self);
  }
  return self->claim(reason) == Waiter::Claim::lost;
}

bool begin_scoped_wait(Deadline& deadline, Shielded shielded) noexcept {
  detail::Scope* const scope = shielded == Shielded::yes ? nullptr : t_current_scope;
  t_late = lower(scope, deadline);
  if (cancelled_scope(scope) != nullptr) return false;
  detail::Scope* const asking = asking_scope(scope, nullptr);
  const char* const reason = asking != nullptr ? asking->before_wait(*asking) : nullptr;
  if (reason != nullptr) detail::cancel(*asking, reason);
  return reason == nullptr;
}

ShownWait::ShownWait(Waiter& waiter, Shielded shielded) noexcept
    : place_(kManyWorkers && t_current_scope != nullptr && shielded == Shielded::no ? &t_place : nullptr) {
  if (place_ == nullptr) return;
  Locked hold(place_->lock);
  place_->waiting = &waiter;
  place_->current_scope = t_current_scope;
}

ShownWait::~ShownWait() {
  if (place_ == nullptr) return;
  Locked hold(place_->lock);
  place_->waiting = nullptr;
}

Error scoped_error(ErrorCode code) noexcept {
  if (code == ErrorCode::timed_out) return error_by(code, t_current_scope == nullptr ? std::uint16_t{0} : t_late);
  const detail::Scope* const by = cancelled_scope(t_current_scope);
  return error_by(code, by == nullptr ? std::uint16_t{0} : by->id);
}

Error error_of(WakeReason reason) noexcept {
  if (reason == WakeReason::closed) return ErrorCode::closed;
  const ErrorCode code = reason == WakeReason::timed_out ? ErrorCode::timed_out : ErrorCode::cancelled;
  const FiberControl* const self = acting_fiber();
  if (self == nullptr) return scoped_error(code);
  if (code == ErrorCode::timed_out) return error_by(code, late_scope(self));
  const bool own = self->cancelled() || (self->worker->scheduler().cancelling() && !self->shielded());
  const detail::Scope* const by = own ? nullptr : cancelled_scope(self->current_scope);
  return error_by(code, by == nullptr ? std::uint16_t{0} : by->id);
}

std::expected<void, Error> check_cancelled() noexcept {
  const FiberControl* const self = acting_fiber();
  if (self != nullptr && is_cancelled(self)) return std::unexpected(error_of(WakeReason::cancelled));
  Error error;
  const detail::Scope* const scope = current_scope();
  if (scope != nullptr && detail::ended(*scope, error)) return std::unexpected(error);
  return {};
}

const char* cancel_reason() noexcept {
  const FiberControl* const self = acting_fiber();
  if (self != nullptr && self->cancelled()) return self->cancel_reason.load(std::memory_order_acquire);
  if (self != nullptr && !self->shielded()) {
    if (const char* const reason = self->worker->scheduler().cancel_reason(); reason != nullptr) return reason;
  }
  const detail::Scope* const by = cancelled_scope(current_scope());
  return by == nullptr ? nullptr : by->reason.load(std::memory_order_acquire);
}

bool cancelled() noexcept {
  const FiberControl* const self = acting_fiber();
  return self != nullptr ? is_cancelled(self) : cancelled_scope(current_scope()) != nullptr;
}

namespace detail {

void own(Scope& scope) noexcept {
  scope.owner = acting_fiber();
  if (scope.owner != nullptr) {
    scope.ticket = scope.owner->ticket;
  } else {
    scope.thread = &t_place;
  }
}

bool is_owner(const Scope& scope) noexcept {
  const FiberControl* const self = acting_fiber();
  return self != nullptr ? scope.owner == self : scope.thread == &t_place;
}

void claim_owner(Scope& scope, ClaimedWaiters& woken) noexcept {
  if (FiberControl* const owner = scope.owner; owner != nullptr) {
    if (owner->claim_ticket(WakeReason::cancelled, scope.ticket) == Waiter::Claim::parked) woken.add(owner);
    return;
  }
  ThreadPlace* const place = scope.thread;
  if (place == nullptr) return;
  // The mark came before the lock: a wait that is shown later sees it.
  Locked hold(place->lock);
  if (place->waiting == nullptr || cancelled_scope(place->current_scope) == nullptr) return;
  if (place->waiting->claim(WakeReason::cancelled) == Waiter::Claim::parked) woken.add(place);
}

// The walk goes in depth, holding the locks of all scopes from `top`, which the caller locked, to the current one, and
// needs no stack of its own.
//
// Invariant: a child whose wait is not claimed here sees the mark, which was set before the walk. A nursery that is
// shown after the walk has passed its place (both took the same lock) gets its children later still; so does a listed
// nursery that takes in a child after claim_children. A child that lives by then is claimed if it waits: either the
// claim meets its word armed, or its wait begins by testing for marks; see begin_scoped_wait.
void claim_below(Scope& top, ClaimedWaiters& woken) noexcept {
  Scope* at = &top;
  Scope* next = at->inner.first();
  for (;;) {
    if (next != nullptr) {
      claim_children_of(*next, woken);
      at = next;
      at->lock.lock();
      next = at->inner.first();
    } else {
      if (at == &top) return;
      at->lock.unlock();
      next = at->next;
      at = at->outer;
    }
  }
}

void mark_and_claim(Scope& scope, const char* reason, ClaimedWaiters& woken) noexcept {
  // With one worker no lock keeps a plain thread, which may end the scope as soon as it sees the mark: that is the last
  // touch. Nothing below could be claimed.
  const bool of_thread = !kManyWorkers && scope.thread != nullptr;
  mark(scope, reason);
  if (of_thread) return;
  claim_owner(scope, woken);
  claim_below(scope, woken);
}

void mark_and_wake(Scope& scope, const char* reason) noexcept {
  if (by_worker([&] { mark_and_wake(scope, reason); })) return;
  ClaimedWaiters woken;
  {
    // An owner that sees the mark may leave and end the scope: `leave` waits for this lock.
    Locked hold(scope.lock);
    mark_and_claim(scope, reason, woken);
  }
  woken.wake();
}

bool claim_waiting(Scope& scope, const char* reason, ClaimedWaiters& woken) noexcept {
  // Pairs with the fence in begin_scoped_wait: either the claim meets the armed wait, or before_wait sees what the
  // caller has stored.
  if constexpr (kManyWorkers) full_fence();
  if (ThreadPlace* const place = scope.thread; place != nullptr) {
    Locked hold(place->lock);
    if (place->waiting == nullptr || asking_scope(place->current_scope, nullptr) != &scope) return false;
    const Waiter::Claim won = place->waiting->claim(WakeReason::cancelled);
    if (won == Waiter::Claim::lost) return false;
    mark(scope, reason);
    claim_below(scope, woken);
    if (won == Waiter::Claim::parked) woken.add(place);
    return true;
  }
  const Waiter::Claim won = scope.owner->claim_ticket(WakeReason::cancelled, scope.ticket);
  if (won == Waiter::Claim::lost) return false;
  mark(scope, reason);
  claim_below(scope, woken);
  if (won == Waiter::Claim::parked) woken.add(scope.owner);
  return true;
}

bool cancel_waiting(Scope& scope, const char* reason) noexcept {
  ClaimedWaiters woken;
  bool waits;
  {
    Locked hold(scope.lock);
    waits = claim_waiting(scope, reason, woken);
  }
  woken.wake();
  return waits;
}

void raise_shield(const std::source_location& where) noexcept {
  FiberControl* const self = acting_fiber();
  if (self == nullptr) return;
  // One more would not fit into the ticket: claims from outside would reach in.
  if (self->ticket / FiberControl::kShieldStep == FiberControl::kMostShields) {
    fatal("more than 15 shields are nested", where);
  }
  self->ticket += FiberControl::kShieldStep;
}

void lower_shield() noexcept {
  FiberControl* const self = acting_fiber();
  if (self != nullptr) self->ticket -= FiberControl::kShieldStep;
}

}  // namespace detail

}  // namespace coir
