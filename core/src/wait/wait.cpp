#include <coir/wait.h>

#include <errno.h>
#include <unistd.h>

#include <coir/budget.h>
#include <coir/resting_wait.h>

#include "wait/park.h"
#include "wait/polling_thread.h"

namespace coir {

namespace {

std::expected<void, Error> wait_on_thread(int fd, Direction direction, Deadline deadline) noexcept {
  pollfd entries[2] = {{.fd = fd, .events = poll_events(direction), .revents = 0}};
  if (auto polled = poll_on_thread(entries, deadline); !polled) return polled;
  if ((entries[0].revents & POLLNVAL) != 0) return std::unexpected(Error{ErrorCode::closed, EBADF});
  return {};
}

}  // namespace

std::expected<void, Error> wait(int fd, Direction direction, Deadline deadline) noexcept {
  spend_budget();
  FiberControl* const self = running_fiber();
  if (self == nullptr) {
    if (this_worker() != nullptr) return std::unexpected(Error{ErrorCode::unsupported});
    return wait_on_thread(fd, direction, deadline);
  }
  if (is_cancelled(self)) return std::unexpected(error_of(WakeReason::cancelled));
  Reactor& reactor = self->worker->scheduler().reactor;
  arm(self);
  // Count the wait before the fiber can be woken: is_quiescent must not find a fiber that waits for nothing.
  bump(self->worker->counters.fd_waits);
  auto attached = reactor.attach(fd, direction, *self);
  WakeReason reason = WakeReason::ready;
  if (attached && *attached) {
    reason = park(self, wait_kind(direction), fd, deadline);
    if (reason != WakeReason::ready && reason != WakeReason::closed) reactor.detach(fd, direction, *self);
  } else {
    disarm(self);
  }
  bump(self->worker->counters.fd_waits, std::int64_t{-1});
  if (!attached) return std::unexpected(attached.error());
  if (reason != WakeReason::ready) return std::unexpected(error_of(reason));
  return {};
}

void close_fd(int fd) noexcept {
  const Visit run;
  if (run) run->reactor.forget(fd);
  ::close(fd);
  if (run) run->reactor.forgotten(fd);
}

std::expected<void, Error> arm_resting_wait(RestingWait& record, int fd, Direction direction) noexcept {
  Worker* const worker = this_worker();
  if (worker == nullptr) return std::unexpected(Error{ErrorCode::unsupported});
  bump(worker->counters.fd_waits);
  auto armed = worker->scheduler().reactor.attach(fd, direction, record);
  if (!armed) bump(worker->counters.fd_waits, std::int64_t{-1});
  return armed;
}

bool disarm_resting_wait(RestingWait& record) noexcept {
  Worker* const worker = this_worker();
  if (worker == nullptr || !worker->scheduler().reactor.detach(record.fd, record.direction, record)) return false;
  bump(worker->counters.fd_waits, std::int64_t{-1});
  return true;
}

bool resting_wait_hears_edges() noexcept {
  Worker* const worker = this_worker();
  return worker != nullptr && !worker->scheduler().reactor.fell_back();
}

}  // namespace coir
