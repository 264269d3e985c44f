#include <coir/config.h>
#include <coir/process.h>

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include <coir/blocking.h>
#include <coir/wait.h>

#include "process/process_start.h"
#include "wait/wait_several.h"

namespace coir {

namespace {

// has_ended tells whether the child has ended, and leaves it to be reaped.
std::expected<bool, Error> has_ended(pid_t pid) noexcept {
  siginfo_t info{};
  while (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
    if (errno != EINTR) return std::unexpected(Error::from_errno(errno));
  }
  return info.si_pid != 0;
}

// poll_end is for kernels without pidfd_open. Blocks.
std::expected<void, Error> poll_end(pid_t pid, const BlockingStop& stop) noexcept {
  for (long ms = 1;; ms = std::min(ms * 2, 8L)) {
    const auto ended = has_ended(pid);
    if (!ended) return std::unexpected(ended.error());
    if (*ended) return {};
    if (stop.wanted()) return std::unexpected(stop.why());
    const timespec pause{.tv_sec = 0, .tv_nsec = ms * 1'000'000};
    nanosleep(&pause, nullptr);
  }
}

std::expected<void, Error> poll_end(pid_t pid, Deadline deadline, bool shielded) noexcept {
  const auto poll = [pid](const BlockingStop& stop) { return poll_end(pid, stop); };
  if constexpr (!COIR_NO_ASYNC) {
    if (shielded && !detail::runs_in_place()) {
      detail::BorrowedCall call(poll, deadline);
      call.kind = detail::BlockingKind::processes;
      return call.go(deadline, true);
    }
  }
  if (shielded) return poll(BlockingStop(deadline));
  return detail::blocking_for(detail::BlockingKind::processes, poll, deadline);
}

}  // namespace

std::expected<Process, Error> Process::start(const Command& command, Deadline deadline) noexcept {
  const auto started = start_process(command, deadline);
  if (!started) return std::unexpected(started.error());
  Process process;
  process.pid_ = started->pid;
  process.pidfd_ = started->pidfd;
  process.in_ = started->in;
  process.out_ = started->out;
  process.err_ = started->err;
  process.reaped_ = false;
  return process;
}

Process::~Process() {
  if (!reaped_) static_cast<void>(stop(std::chrono::nanoseconds(0)));
  for (const int fd : {pidfd_, in_, out_, err_}) {
    if (fd >= 0) close_fd(fd);
  }
}

std::expected<DescriptorStream, Error> Process::take_in() noexcept {
  if (in_ < 0) return std::unexpected(Error{ErrorCode::stale});
  auto stream = DescriptorStream::adopt(in_);
  if (stream) in_ = -1;
  return stream;
}

// await_end returns when the process has ended but is not reaped yet: until then its id, and its group's, are not
// reused.
std::expected<void, Error> Process::await_end(Deadline deadline, bool shielded) noexcept {
  for (;;) {
    const auto ended = has_ended(pid_);
    if (!ended) return std::unexpected(lost(ended.error()));
    if (*ended) return {};
    if (pidfd_ < 0) {
      const auto polled = poll_end(pid_, deadline, shielded);
      if (!polled && polled.error().sys == ECHILD) continue;
      return polled;
    }
    const Awaited end[] = {{.fd = pidfd_}};
    if (auto waited = wait_several(end, deadline, shielded ? Shielded::yes : Shielded::no); !waited) return waited;
  }
}

// lost notes that the process was reaped elsewhere, or that the kernel keeps nothing of it because SIGCHLD is ignored: its
// id may be another's by now.
Error Process::lost(Error error) noexcept {
  reaped_ = true;
  lost_ = error.sys;
  return error;
}

std::expected<Exit, Error> Process::reap() noexcept {
  siginfo_t info{};
  while (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED) != 0) {
    if (errno != EINTR) return std::unexpected(lost(Error::from_errno(errno)));
  }
  reaped_ = true;
  exit_ = info.si_code == CLD_EXITED ? Exit{.status = info.si_status} : Exit{.signal = info.si_status};
  return exit_;
}

std::expected<Exit, Error> Process::outcome() const noexcept {
  if (lost_ != 0) return std::unexpected(Error::from_errno(lost_));
  return exit_;
}

std::expected<Exit, Error> Process::wait(Deadline deadline) noexcept {
  if (pid_ < 0) return std::unexpected(Error{ErrorCode::stale});
  if (reaped_) return outcome();
  if (auto ended = await_end(deadline, false); !ended) return std::unexpected(ended.error());
  return reap();
}

std::expected<void, Error> Process::signal(int number) const noexcept {
  if (reaped_) return std::unexpected(Error{ErrorCode::stale});
  if (const auto known = has_ended(pid_); !known) return std::unexpected(known.error());
  const bool reached = kill(-pid_, number) == 0;
  const int error = errno;
  // The process is not reaped, so the id is its own. A process that left its group before the group was signalled is
  // signalled by itself; one that leaves later has got the group's signal.
  if (getpgid(pid_) != pid_ && kill(pid_, number) == 0) return {};
  if (!reached) return std::unexpected(Error::from_errno(error));
  return {};
}

std::expected<Exit, Error> Process::stop(std::chrono::nanoseconds grace) noexcept {
  if (pid_ < 0) return std::unexpected(Error{ErrorCode::stale});
  if (reaped_) return outcome();
  if (grace.count() > 0) {
    static_cast<void>(signal(SIGTERM));
    static_cast<void>(await_end(Deadline::after(grace), true));
  }
  if (reaped_) return outcome();  // elsewhere, meanwhile
  // The process is not reaped yet, so the group is still its own: kill what is left of the group.
  static_cast<void>(signal(SIGKILL));
  static_cast<void>(await_end(Deadline::never(), true));
  return reap();
}

}  // namespace coir
