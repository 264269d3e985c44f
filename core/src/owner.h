#pragma once

#include <coir/cancel_scope.h>

namespace coir::detail {

// What a scope has to do with the fiber that owns it. Without fibers each of these does nothing.

// own notes the caller as the owner, and by which ticket its waits inside can be claimed.
void own(Scope& scope) noexcept;
void wake_owner(Scope& scope) noexcept;

// raise_shield changes the ticket of the caller's waits until lower_shield, so that claims from outside miss them.
void raise_shield() noexcept;
void lower_shield() noexcept;

}  // namespace coir::detail
