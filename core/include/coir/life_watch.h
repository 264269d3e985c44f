#pragma once

// A thread beside the workers tells whether the program is alive, as one that feeds a watchdog must know.
//
//   const auto feed = [](bool alive) -> LifeWatch::Turn {
//     if (alive) show("the watchdog is fed");
//     return {.pause = 5s, .patience = 10s};
//   };
//   if (auto watched = LifeWatch::start(10s, feed); !watched) return complain(watched.error());

#include <coir/port/needs_fibers.h>

#include <expected>
#include <string_view>

#include <coir/callable.h>
#include <coir/deadline.h>
#include <coir/error.h>

namespace coir {

// LifeWatch looks from time to time, on a thread of its own, whether the program is alive: each worker that has a fiber
// has switched within the patience, and each Heartbeat has reported within its period. So it sees also that all
// workers hang. A fiber that keeps its worker for longer, whether it computes, waits in a system call or does not get
// the processor, is named on standard error with its backtrace, and then each group that is late: once until it switches
// or reports, and before the program hears of it. A program with a log of its own takes the names, and leaves the
// backtraces there.
//
// Lines for which standard error has no room are dropped: the watch never waits for their reader. The backtrace is taken
// by a signal (SIGURG).
//
// One per process. It does not keep a run from ending, nor a deadlock from being reported, and may run before and after
// the run.
class LifeWatch {
 public:
  // Turn is how long until the next look, and how long a fiber may then have kept its worker. A fiber is named at the
  // first look after its patience is over.
  struct Turn {
    std::chrono::nanoseconds pause, patience;
  };
  // Look is called after each look, on the watch's thread, which has 64 KB of stack and blocks all signals. It may block.
  // A lambda that has a name and captures is referred to, and outlives stop.
  using Look = Callable<Turn(bool alive)>;
  // Tell takes the text of a line that names a fiber or a group, in place of standard error: without a program's name in
  // front and a new line behind. Called before `look` on its thread, as it is; the text is valid during the call.
  using Tell = Callable<void(std::string_view text)>;

  // start looks at once, and then as often as `look` says. Error: system (no thread can be started).
  [[nodiscard]] static std::expected<void, Error> start(std::chrono::nanoseconds patience, Look look,
                                                        Tell tell = {}) noexcept;

  // stop returns when no look is in progress any more. Nothing happens if none was started. From the thread that
  // started it, or a fiber.
  static void stop() noexcept;
};

}  // namespace coir
