#include <coir/wait.h>

#include <errno.h>
#include <unistd.h>

#include <coir/budget.h>
#include <coir/resting_wait.h>

#include "schedule/errand.h"
#include "schedule/visit.h"
#include "wait/park.h"
#include "wait/polling_thread.h"

namespace coir {

namespace {

std::expected<void, Error> wait_on_thread(int fd, Direction direction, Deadline deadline) noexcept {
  // poll leaves out negative descriptors; to wait for one would be for ever.
  if (fd < 0) return std::unexpected(Error{ErrorCode::invalid, EBADF});
  pollfd entries[2] = {{.fd = fd, .events = poll_events(direction), .revents = 0}};
  if (auto polled = poll_on_thread(entries, deadline); !polled) return polled;
  if ((entries[0].revents & POLLNVAL) != 0) return std::unexpected(Error{ErrorCode::closed, EBADF});
  return {};
}

// look_at asks the kernel, because the poller may not have asked yet.
[[gnu::noinline]] std::expected<void, Error> look_at(int fd, Direction direction) noexcept {
  if (fd < 0) return std::unexpected(Error{ErrorCode::invalid, EBADF});
  pollfd entry{.fd = fd, .events = poll_events(direction), .revents = 0};
  if (auto polled = poll_now({&entry, 1}); !polled) return polled;
  if ((entry.revents & POLLNVAL) != 0) return std::unexpected(Error{ErrorCode::closed, EBADF});
  return {};
}

// by_worker_of is by_worker for what changes the waits for `fd`. One that the run has not enrolled has none.
template <class F>
bool by_worker_of(int fd, F&& f) noexcept {
  if (kManyWorkers || this_worker() != nullptr) return false;
  {
    const Visit run;
    if (!run || !run->reactor.is_enrolled(fd)) return false;
  }
  return by_worker(f);
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
  if (deadline.ns() <= 0) return look_at(fd, direction);
  Reactor& reactor = self->worker->scheduler().reactor;
  arm(self);
  // Count the wait before the fiber can be woken: is_quiescent must not find a fiber that waits for nothing.
  bump(self->worker->counters.fd_waits);
  detail::DescriptorNode node(*self);
  auto attached = reactor.attach(fd, direction, node);
  WakeReason reason = WakeReason::ready;
  if (attached && *attached) {
    reason = park(self, wait_kind(direction), fd, deadline);
    if (reason != WakeReason::ready && reason != WakeReason::closed) reactor.detach(fd, direction, node);
  } else {
    disarm(self);
  }
  bump(self->worker->counters.fd_waits, std::int64_t{-1});
  if (!attached) return std::unexpected(attached.error());
  if (reason != WakeReason::ready) return std::unexpected(error_of(reason));
  return {};
}

void close_fd(int fd) noexcept {
  if (by_worker_of(fd, [fd] { close_fd(fd); })) return;
  const Visit run;
  if (run) run->reactor.forget(fd);
  ::close(fd);
  if (run) run->reactor.forgotten(fd);
}

void end_waits(int fd) noexcept {
  if (by_worker_of(fd, [fd] { end_waits(fd); })) return;
  if (const Visit run; run) run->reactor.end(fd);
}

std::expected<void, Error> arm_resting_wait(RestingWait& record, int fd, Direction direction) noexcept {
  return ArmingUnderLock(fd).arm(record, direction);
}

ArmingUnderLock::ArmingUnderLock(int fd) noexcept : fd_(fd) {
  if (Worker* const worker = this_worker(); worker != nullptr) {
    scheduler_ = &worker->scheduler();
  } else {
    visits_ = kManyWorkers && door::enter();
    scheduler_ = visits_ ? Scheduler::of_process() : nullptr;
  }
  watched_ = scheduler_ != nullptr ? scheduler_->reactor.enroll(fd) : std::unexpected(Error{ErrorCode::unsupported});
}

// The wake may have run already, and the descriptor may be closed: touch only the poller.
ArmingUnderLock::~ArmingUnderLock() {
  if (armed_) scheduler_->reactor.restart();
  if (visits_) door::leave();
}

std::expected<void, Error> ArmingUnderLock::arm(RestingWait& record, Direction direction) noexcept {
  if (!watched_) return watched_;
  scheduler_->count_resting(1);
  auto armed = scheduler_->reactor.attach(fd_, direction, record);
  armed_ = armed.has_value();
  if (!armed) scheduler_->count_resting(-1);
  return armed;
}

bool disarm_resting_wait(RestingWait& record) noexcept {
  bool disarmed = false;
  if (by_worker_of(record.fd, [&] { disarmed = disarm_resting_wait(record); })) return disarmed;
  const Visit run;
  if (!run || !run->reactor.detach(record.fd, record.direction, record)) return false;
  run->count_resting(-1);
  return true;
}

bool resting_wait_hears_edges() noexcept {
  const Visit run;
  return run && !run->reactor.fell_back();
}

}  // namespace coir
