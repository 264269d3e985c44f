#pragma once

#include <expected>
#include <span>

#include <coir/deadline.h>
#include <coir/error.h>
#include <coir/wait.h>

#include "wait/current_scope.h"

namespace coir {

// wait_several as coir/wait.h has it, for a wait that may be shielded. Without fibers serial_wait_several.cpp has it.
[[nodiscard]] std::expected<void, Error> wait_several(std::span<const Awaited> several, Deadline deadline,
                                                      Shielded shielded) noexcept;

// pause_between lets other fibers run between two steps of a caller that never has to wait.
// Errors: cancelled, timed_out.
[[nodiscard]] std::expected<void, Error> pause_between(Deadline deadline) noexcept;

}  // namespace coir
