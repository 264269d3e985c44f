#include <coir/serial.h>
#include <coir/sleep.h>
#include <coir/wait.h>

#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "wait/current_scope.h"
#include "wait/poll_events.h"

namespace coir {

namespace {

constinit Interrupter* g_interrupter = nullptr;

// interrupter is what may end the caller's wait. A shield keeps it away, as it keeps a shutdown away from fibers.
Interrupter* interrupter() noexcept {
  for (const detail::Scope* scope = current_scope(); scope != nullptr; scope = scope->outer) {
    if (scope->shield) return nullptr;
  }
  return g_interrupter;
}

}  // namespace

void set_interrupter(Interrupter* interrupter) noexcept {
  g_interrupter = interrupter;
}

std::expected<std::size_t, Error> wait_any(std::span<pollfd> entries, Deadline deadline) noexcept {
  for (;;) {
    Interrupter* const aside = interrupter();
    entries[0] = {.fd = aside != nullptr ? aside->fd : -1, .events = POLLIN, .revents = 0};
    const Deadline next = aside != nullptr ? std::min(deadline, aside->deadline) : deadline;
    int ready = ::poll(entries.data(), static_cast<nfds_t>(entries.size()), next.remaining_ms());
    if (ready < 0) {
      if (errno == EINTR) continue;
      return std::unexpected(Error::from_errno(errno));
    }
    const bool interrupted = entries[0].revents != 0;
    if (aside != nullptr && (interrupted || aside->deadline.passed())) {
      g_interrupter = nullptr;  // what it calls may wait itself
      const bool go_on = aside->happened(*aside);
      g_interrupter = aside;
      if (!go_on) return std::unexpected(Error{ErrorCode::cancelled});
    }
    if (interrupted) --ready;
    if (ready > 0) return static_cast<std::size_t>(ready);
    if (deadline.passed()) return std::unexpected(Error{ErrorCode::timed_out});
  }
}

std::expected<void, Error> wait(int fd, Direction direction, Deadline deadline) noexcept {
  // poll leaves out negative descriptors; to wait for one would be for ever.
  if (fd < 0) return std::unexpected(Error{ErrorCode::invalid, EBADF});
  if (!begin_scoped_wait(deadline)) return std::unexpected(scoped_error(ErrorCode::cancelled));
  pollfd entries[2];
  entries[1] = {.fd = fd, .events = poll_events(direction), .revents = 0};
  if (auto ready = wait_any(entries, deadline); !ready) {
    return std::unexpected(ready.error() == ErrorCode::timed_out ? scoped_error(ErrorCode::timed_out) : ready.error());
  }
  if ((entries[1].revents & POLLNVAL) != 0) return std::unexpected(Error{ErrorCode::closed, EBADF});
  return {};
}

std::expected<void, Error> sleep(std::chrono::nanoseconds span) noexcept {
  return sleep_until(Deadline::after(span));
}

std::expected<void, Error> sleep_until(Deadline deadline) noexcept {
  if (!begin_scoped_wait(deadline)) return std::unexpected(scoped_error(ErrorCode::cancelled));
  if (deadline.is_never() && interrupter() == nullptr) return std::unexpected(Error{ErrorCode::invalid});
  pollfd none[1];
  Error error = wait_any(none, deadline).error();  // nothing is listed that could be ready
  if (error == ErrorCode::timed_out) error = scoped_error(ErrorCode::timed_out);
  if (error.is_late()) return {};
  return std::unexpected(error);
}

void close_fd(int fd) noexcept {
  ::close(fd);
}

void end_waits(int) noexcept {}  // no fiber waits

}  // namespace coir
