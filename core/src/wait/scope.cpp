#include <coir/detail/fatal.h>

#include "wait/current_scope.h"
#include "wait/owner.h"

namespace coir {

namespace {

constinit Atomic<std::uint32_t> g_scopes{0};

std::uint16_t next_scope_id() noexcept {
  return static_cast<std::uint16_t>(g_scopes.fetch_add(1, std::memory_order_relaxed) % 65535 + 1);
}

// Ids repeat after 65,535 scopes. Scopes that are in force together must have different ids, or the inner one would
// take an outer one's end for its own.
bool is_around(const detail::Scope* scope, std::uint16_t id) noexcept {
  for (; scope != nullptr; scope = scope->outer) {
    if (scope->id == id) return true;
  }
  return false;
}

}  // namespace

namespace detail {

void adopt(Scope& scope) noexcept {
  Scope* const outer = current_scope();
  scope.outer = outer;
  do {
    scope.id = next_scope_id();
  } while (is_around(outer, scope.id));
  if (scope.nursery == nullptr && outer != nullptr) scope.nursery = outer->nursery;
  if (outer != nullptr) {
    scope.deadline = outer->deadline;
    scope.deadline_id = outer->deadline_id;
  }
}

void enter(Scope& scope, Deadline deadline) noexcept {
  adopt(scope);
  if (deadline < scope.deadline) {
    scope.deadline = deadline;
    scope.deadline_id = scope.id;
  }
  own(scope);
  current_scope() = &scope;
}

void enter_shield(Scope& scope, Deadline deadline, const std::source_location& where) noexcept {
  adopt(scope);
  scope.shield = true;
  scope.deadline = deadline;
  scope.deadline_id = scope.id;
  raise_shield(where);
  own(scope);
  current_scope() = &scope;
}

// All scopes around a shown scope are shown too: they were before, or are now.
void show(Scope& scope) noexcept {
  for (Scope* at = &scope; !at->shown && at->outer != nullptr && !at->outer->shield; at = at->outer) {
    Scope& outer = *at->outer;
    Locked hold(outer.lock);
    outer.inner.add(*at);
    at->shown = true;
  }
}

void hide(Scope& scope) noexcept {
  if (!scope.shown) return;
  Locked hold(scope.outer->lock);
  scope.outer->inner.remove(scope);
  scope.shown = false;
}

void leave(Scope& scope) noexcept {
  Scope*& innermost = current_scope();
  if (innermost != &scope) fatal("a cancel scope or nursery is left by another fiber, or before one inside it");
  hide(scope);
  // A canceller holds the scope's lock from before the mark until it touches the scope for the last time.
  if (scope.cancelled.load(std::memory_order_relaxed)) Locked wait_for_them(scope.lock);
  innermost = scope.outer;
  if (scope.shield) lower_shield();
}

void mark(Scope& scope, const char* reason) noexcept {
  const char* none = nullptr;
  scope.reason.compare_exchange_strong(none, reason, std::memory_order_release, std::memory_order_relaxed);
  // seq_cst: either the owner sees the mark where its wait begins to park, or the claim finds the wait armed.
  scope.cancelled.store(true, std::memory_order_seq_cst);
}

void cancel(Scope& scope, const char* reason) noexcept {
  mark_and_wake(scope, reason);
}

bool ended(const Scope& scope, Error& error) noexcept {
  if (const Scope* const by = cancelled_scope(&scope); by != nullptr) {
    error = error_by(ErrorCode::cancelled, by->id);
    return true;
  }
  if (!scope.deadline.passed()) return false;
  error = error_by(ErrorCode::timed_out, scope.deadline_id);
  return true;
}

}  // namespace detail

bool CancelScope::cancelled() const noexcept {
  return cancelled_scope(&scope_) != nullptr;
}

}  // namespace coir
