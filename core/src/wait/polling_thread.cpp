#include "wait/polling_thread.h"

#include <errno.h>

#include "base/fallback.h"
#include "wait/park.h"

namespace coir {

std::expected<void, Error> poll_now(std::span<pollfd> entries) noexcept {
  const int ready = poll(entries.data(), entries.size(), 0);
  if (ready > 0) return {};
  return std::unexpected(ready == 0 || errno == EINTR ? Error{ErrorCode::timed_out} : Error::from_errno(errno));
}

std::expected<void, Error> poll_on_thread(std::span<pollfd> entries, Deadline deadline, Shielded shielded) noexcept {
  tell_fallback(Fallback::blocks_thread);
  if (kManyWorkers && shielded == Shielded::no && current_scope() != nullptr) {
    if (PollingThread thread; thread.usable()) {
      thread.arm(0);
      const WakeReason reason = thread.park(entries, deadline);
      if (reason == WakeReason::ready) return {};
      return std::unexpected(error_of(reason));
    }
  }
  if (!begin_scoped_wait(deadline, shielded)) return std::unexpected(scoped_error(ErrorCode::cancelled));
  entries = entries.first(entries.size() - 1);
  for (;;) {
    const int ready = poll(entries.data(), entries.size(), deadline.remaining_ms());
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return std::unexpected(Error::from_errno(errno));
    if (ready == 0 && deadline.passed()) return std::unexpected(scoped_error(ErrorCode::timed_out));
  }
}

}  // namespace coir
