#pragma once

// Signals, for fibers.
//
//   while (auto number = wait_signal({SIGHUP, SIGTERM})) {
//     if (*number == SIGTERM) return;
//     show("reload");
//   }

#include <expected>
#include <initializer_list>

#include <coir/deadline.h>
#include <coir/error.h>

namespace coir {

// kMostSignalWaiters is how many callers may wait for signals at a time.
inline constexpr unsigned kMostSignalWaiters = 8;

// wait_signal parks until one of `signals` has been sent to the process, and returns its number.
//
// Up to kMostSignalWaiters fibers and threads may wait, for the same signals or for others, and each gets the signal. A
// caller that waits again gets the signals since its last call, if that was for the same signal, unless eight others
// have called meanwhile. A signal that arrives while nobody waits is kept for the first that asks. A signal that
// arrives several times before it is taken counts once, as with the kernel.
//
// The first call for a signal takes over its handler for the rest of the process's life; call it, or catch_signals,
// before the signal can matter. The handler counts the signal and wakes the waiters: a system call for each.
//
// With Deadline::now() it takes a signal that has arrived, and needs no descriptor. The first waiter needs no descriptor
// besides those of catch_signals; each further one at the same time needs one.
//
// Fiber, thread, or a build without fibers. Errors: timed_out, cancelled, limit (too many wait), invalid (no such
// signal), and those of coir::wait.
[[nodiscard]] std::expected<int, Error> wait_signal(std::initializer_list<int> signals,
                                                    Deadline deadline = Deadline::never()) noexcept;

// catch_signals takes over the handlers without waiting, and two descriptors, with which one caller at a time can wait.
// Errors: invalid (no such signal), limit (no descriptor left), no_memory, system.
[[nodiscard]] std::expected<void, Error> catch_signals(std::initializer_list<int> signals) noexcept;

// signals_fd is readable when wait_signal may have a caught signal to return: for programs that poll by themselves. It
// stays open; -1 before catch_signals.
int signals_fd() noexcept;

}  // namespace coir
