#pragma once

#include <expected>
#include <span>

#include <coir/deadline.h>
#include <coir/error.h>
#include <coir/wait.h>

#include "wait/current_scope.h"

namespace coir {

// Awaited is one of several descriptors that a call waits for at a time; one whose fd is negative is left out.
struct Awaited {
  int fd = -1;
  Direction direction = Direction::readable;
};

inline constexpr std::size_t kMostAwaited = 4;

// wait_several is wait for up to kMostAwaited descriptors: it returns when one of them may be ready, not saying which.
// Callers try them all until EAGAIN before they wait again. Without fibers serial_wait_several.cpp has it. Errors: as
// wait.
[[nodiscard]] std::expected<void, Error> wait_several(std::span<const Awaited> several, Deadline deadline,
                                                      Shielded shielded = Shielded::no) noexcept;

// pause_between lets others have their turn between two steps of a caller that finds something to do each time.
// Errors: cancelled, timed_out.
[[nodiscard]] std::expected<void, Error> pause_between(Deadline deadline) noexcept;

}  // namespace coir
