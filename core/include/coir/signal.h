#pragma once

#include <expected>
#include <initializer_list>

#include <coir/deadline.h>
#include <coir/error.h>

namespace coir {

// wait_signal parks until one of `signals` has been sent to the process, and returns its number. What arrives while
// nobody waits is kept (once per signal number). The first call for a signal takes over its handler for the rest of the
// process's life; call it, or catch_signals, before the signal can matter. The handler itself writes one word and one
// byte. One waiter at a time: a second gets
// `busy`. Errors: those of catch_signals and of coir::wait.
[[nodiscard]] std::expected<int, Error> wait_signal(std::initializer_list<int> signals,
                                                    Deadline deadline = Deadline::never()) noexcept;

// catch_signals takes over the handlers without waiting.
// Errors: invalid (no such signal), limit (no descriptor left), no_memory, system.
[[nodiscard]] std::expected<void, Error> catch_signals(std::initializer_list<int> signals) noexcept;

// signals_fd is readable when a caught signal may wait to be taken by wait_signal: for those who poll by themselves. It
// stays open; -1 before catch_signals.
int signals_fd() noexcept;

}  // namespace coir
