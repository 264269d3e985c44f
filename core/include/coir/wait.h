#pragma once

// Waits until a descriptor is ready.
//
//   if (read(fd, buffer, sizeof buffer) < 0 && errno == EAGAIN) {
//     if (auto ready = coir::wait(fd, Direction::readable, deadline); !ready) return complain(ready.error());
//   }

#include <cstddef>
#include <expected>
#include <span>

#include <coir/deadline.h>
#include <coir/descriptor.h>
#include <coir/error.h>

namespace coir {

// wait returns when `fd` may be read or written without blocking, or has urgent news (POLLPRI), when it has hung up or
// failed (the next system call tells which), when the deadline passes, or when the caller is cancelled.
//
// This is the one place where network code blocks. On a fiber it parks the fiber; on a plain thread, and in a build
// without fibers, it is poll(2). `fd` must be non-blocking, and on a fiber it must be closed by coir::close_fd, for the
// reactor keeps it registered, edge-triggered, for its life; debug and sanitizer builds end the process with a line where
// it was closed otherwise and its number is waited for again. Call it after EAGAIN or after a short read or write, never
// to ask first: an edge that has been consumed does not come again. May return without readiness; callers loop.
//
// Any number may wait for one fd and direction; all of them return when it is ready.
// Errors: timed_out, cancelled, closed (close_fd was called meanwhile), busy (a RestingWait sleeps on it), no_memory,
// system; invalid (fd is negative); limit (fd is beyond the reactor's table); unsupported on a worker's own stack, where
// nothing may wait.
// Cost: no system call when the readiness is already known; one epoll_ctl in the fd's life.
[[nodiscard]] std::expected<void, Error> wait(int fd, Direction direction,
                                              Deadline deadline = Deadline::never()) noexcept;

// Awaited is one of several descriptors that a call waits for at a time; one whose fd is negative is left out.
struct Awaited {
  int fd = -1;
  Direction direction = Direction::readable;
};

inline constexpr std::size_t kMostAwaited = 10;

// wait_several is wait for up to kMostAwaited descriptors: it returns when one of them may be ready, and does not tell
// which. Callers try them all until EAGAIN before they wait again. Errors: as wait; invalid (there are more).
[[nodiscard]] std::expected<void, Error> wait_several(std::span<const Awaited> several,
                                                      Deadline deadline = Deadline::never()) noexcept;

// close_fd closes `fd` and wakes its waiters with `closed`. From a fiber or a thread. errno is not used.
void close_fd(int fd) noexcept;

// end_waits wakes the fibers that wait for `fd` with `closed`, as they do that wait for it from now on until close_fd
// closes it: for a descriptor that others may still use. It does not wake threads; a resting wait is disarmed.
void end_waits(int fd) noexcept;

}  // namespace coir
