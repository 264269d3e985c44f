#pragma once

// Signals that interrupt waits, in a build without fibers.
//
//   struct Stop : coir::Interrupter {};
//
//   void stop_at(Stop& stop) {
//     stop.fd = fd;                                                               // readable when a signal has come
//     stop.happened = [](coir::Interrupter&) noexcept { return false; };          // false: the wait ends
//     coir::set_interrupter(&stop);
//   }

#include <poll.h>

#include <cstddef>
#include <expected>
#include <span>

#include <coir/deadline.h>
#include <coir/error.h>

namespace coir {

// These functions exist only in a build without fibers (COIR_NO_ASYNC), where nothing else runs while the program
// waits. serial_wait.cpp defines them; other builds only declare them.

// Interrupter decides, while the program waits, whether the wait goes on.
struct Interrupter {
  // Runs inside wait or wait_any, on the program's own stack, when `fd` is readable or `deadline` has passed. It
  // consumes the input of `fd`, and moves a deadline that has passed. False: the wait ends with `cancelled`. It is not
  // asked while it runs, nor inside a Shield.
  using Happened = bool (*)(Interrupter& self) noexcept;
  Happened happened = nullptr;
  int fd = -1;
  Deadline deadline;
};

// set_interrupter takes `interrupter` for every wait from now on; null for none. It is not owned.
void set_interrupter(Interrupter* interrupter) noexcept;

// wait_any waits until one of `entries` is ready, as poll(2) does, and returns how many are. The first entry belongs to
// wait_any, the others to the caller; one whose fd is negative is left out.
// Errors: timed_out, cancelled (the interrupter said so), system.
[[nodiscard]] std::expected<std::size_t, Error> wait_any(std::span<pollfd> entries, Deadline deadline) noexcept;

}  // namespace coir
