#include <poll.h>

#include <coir/serial.h>

#include "wait/current_scope.h"
#include "wait/poll_events.h"
#include "wait/wait_several.h"

namespace coir {

std::expected<void, Error> wait_several(std::span<const Awaited> several, Deadline deadline,
                                        Shielded shielded) noexcept {
  if (shielded == Shielded::yes) {
    const Shield here(Deadline::never());
    return wait_several(several, deadline, Shielded::no);
  }
  if (several.size() > kMostAwaited) return std::unexpected(Error{ErrorCode::invalid});
  pollfd entries[1 + kMostAwaited];
  std::size_t count = 1;
  for (const Awaited& one : several) {
    entries[count++] = {.fd = one.fd, .events = poll_events(one.direction), .revents = 0};
  }
  if (!begin_scoped_wait(deadline)) return std::unexpected(scoped_error(ErrorCode::cancelled));
  if (auto ready = wait_any({entries, count}, deadline); !ready) {
    return std::unexpected(ready.error() == ErrorCode::timed_out ? scoped_error(ErrorCode::timed_out) : ready.error());
  }
  return {};
}

std::expected<void, Error> wait_several(std::span<const Awaited> several, Deadline deadline) noexcept {
  return wait_several(several, deadline, Shielded::no);
}

std::expected<void, Error> pause_between(Deadline deadline) noexcept {
  // A wait for nothing still asks the interrupter.
  pollfd none[1];
  if (auto asked = wait_any(none, Deadline::now()); !asked && asked.error() == ErrorCode::cancelled) {
    return std::unexpected(asked.error());
  }
  if (auto going = check_cancelled(); !going) return going;
  if (deadline.passed()) return std::unexpected(Error{ErrorCode::timed_out});
  return {};
}

}  // namespace coir
