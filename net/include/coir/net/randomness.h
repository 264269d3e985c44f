#pragma once

// Random numbers that nobody can guess, on a machine that has just started, too.
//
//   char key[16];
//   if (auto drawn = draw_secret(key, Deadline::after(10s)); !drawn) return complain(drawn.error());
//
// A board without a source of entropy has none at first. Linux gathers some from its timer's jitter, in a second or two, but only
// while a thread waits for them; so a program that only looks now and then would wait for ever.

#include <coir/deadline.h>
#include <coir/error.h>

#include <expected>
#include <span>

namespace coir {

// randomness_ready tells whether the kernel has random numbers. It never waits. Any thread.
bool randomness_ready() noexcept;

// await_randomness waits until it has, and looks four times a second. A thread of its own waits for the kernel, at most
// one in the process, for as long as that takes. A build without fibers has no further thread: there SIGALRM ends the
// call to the kernel, and the deadline may be missed by a second. Fiber or thread. Errors: those of sleep_until;
// timed_out (the deadline).
[[nodiscard]] std::expected<void, Error> await_randomness(Deadline deadline = Deadline::never()) noexcept;

// draw_secret fills `into`, of 256 bytes at most, for keys and tokens; it waits as await_randomness does.
// Errors: those of await_randomness; system (the kernel refuses getrandom).
[[nodiscard]] std::expected<void, Error> draw_secret(std::span<char> into,
                                                     Deadline deadline = Deadline::never()) noexcept;

}  // namespace coir
