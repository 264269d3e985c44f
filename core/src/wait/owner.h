#pragma once

#include <cstdint>
#include <source_location>

#include <coir/cancel_scope.h>

namespace coir {

class ClaimedWaiters;

namespace detail {

// The functions by which a scope acts on the fiber that owns it. Without fibers they do nothing:
// serial_current_scope.cpp.

// mark makes the scope cancelled.
void mark(Scope& scope, const char* reason) noexcept;

// own records the caller as the owner, and the ticket by which its waits inside can be claimed.
void own(Scope& scope) noexcept;

// Each claims waits in a marked scope: claim_owner the owner's, claim_below those of the children of nurseries inside,
// mark_and_claim marks it first and claims both. A wait that begins from now on sees the mark. The caller keeps the scope
// in place, and holds its lock for the last two. mark_and_wake does so for a scope whose owner may end it as soon as it
// sees the mark, and wakes.
void claim_owner(Scope& scope, ClaimedWaiters& woken) noexcept;
void claim_below(Scope& scope, ClaimedWaiters& woken) noexcept;
void mark_and_claim(Scope& scope, const char* reason, ClaimedWaiters& woken) noexcept;

// claim_waiting marks the scope and claims likewise, but only if the owner waits right inside it: see cancel_waiting.
bool claim_waiting(Scope& scope, const char* reason, ClaimedWaiters& woken) noexcept;
void mark_and_wake(Scope& scope, const char* reason) noexcept;

// claim_children_of, of scope/nursery_base.cpp, claims the waits of the children if `scope` is a nursery's own.
void claim_children_of(Scope& scope, ClaimedWaiters& woken) noexcept;

// cancel_claim cancels the fiber of that id and the children of its nurseries, and claims whom the caller must wake.
void cancel_claim(FiberControl* fiber, std::uint64_t id, const char* reason, ClaimedWaiters& woken) noexcept;

// raise_shield changes the ticket of the caller's waits until lower_shield, so that claims from outside miss them.
void raise_shield(const std::source_location& where) noexcept;
void lower_shield() noexcept;

}  // namespace detail

}  // namespace coir
