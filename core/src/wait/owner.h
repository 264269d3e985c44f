#pragma once

#include <cstdint>
#include <source_location>

#include <coir/cancel_scope.h>

namespace coir {

class ClaimedWaiters;

namespace detail {

// What a scope has to do with the fiber that owns it. Without fibers each of these does nothing.

// mark makes the scope cancelled.
void mark(Scope& scope, const char* reason) noexcept;

// own notes the caller as the owner, and by which ticket its waits inside can be claimed.
void own(Scope& scope) noexcept;

// Each claims waits in a marked scope: claim_owner its owner's, claim_below those of the children of nurseries further
// in, claim_inside both. A wait that begins from now on sees the mark. The caller keeps the scope in place, and holds
// its lock for the last two. mark_and_wake marks, claims and wakes, for a scope that its owner may end as soon as it
// sees the mark.
void claim_owner(Scope& scope, ClaimedWaiters& woken) noexcept;
void claim_below(Scope& scope, ClaimedWaiters& woken) noexcept;
void claim_inside(Scope& scope, ClaimedWaiters& woken) noexcept;
void mark_and_wake(Scope& scope, const char* reason) noexcept;

// claim_children_of, of scope/nursery_base.cpp, claims the waits of the children if `scope` is a nursery's own.
void claim_children_of(Scope& scope, ClaimedWaiters& woken) noexcept;

// cancel_claim cancels the fiber of that id, and returns it if the caller is to wake it, or null.
FiberControl* cancel_claim(FiberControl* fiber, std::uint64_t id, const char* reason) noexcept;

// raise_shield changes the ticket of the caller's waits until lower_shield, so that claims from outside miss them.
void raise_shield(const std::source_location& where) noexcept;
void lower_shield() noexcept;

}  // namespace detail

}  // namespace coir
