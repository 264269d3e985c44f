#pragma once

#include <coir/deadline.h>
#include <coir/error.h>

#include <expected>

namespace coir {

// sleep waits for at least `span`, sleep_until at least until `deadline`:
//
//   if (auto slept = sleep(50ms); !slept) return slept;   // cancelled, or a deadline around the caller has passed
//
// A fiber parks. A plain thread blocks, and so does a program in a build without fibers, whose interrupter
// (coir/serial.h) is asked meanwhile.
// Errors: cancelled, timed_out (of a scope); unsupported (on a worker's own stack); invalid (nothing could ever end it:
// a plain thread without a scope, or a build without fibers, and no deadline).
[[nodiscard]] std::expected<void, Error> sleep(std::chrono::nanoseconds span) noexcept;
[[nodiscard]] std::expected<void, Error> sleep_until(Deadline deadline) noexcept;

}  // namespace coir
