#pragma once

#include <coir/config.h>
#include <coir/deadline.h>

#if !COIR_NO_ASYNC
#include <coir/atomic.h>
#include <coir/fiber.h>
#include <coir/mutex.h>

#include <expected>
#endif

namespace coir {

// let_others_run gives the worker to other fibers, and hears of descriptors and timers, in the middle of what is done
// for many or for long. Without fibers nobody waits for it, nor for a plain thread beside one worker.
#if COIR_NO_ASYNC
inline void let_others_run() noexcept {}
#else
inline void let_others_run() noexcept {
  if (kManyWorkers || current().id() != 0) yield_to_events();
}
#endif

// A Slice is a share of work for many, of about a millisecond.
class Slice {
 public:
  // go_on lets others run if the share is used up. Cost otherwise: a reading of the clock.
  void go_on() noexcept {
    if (!end_.passed()) return;
    let_others_run();
    end_ = Deadline::after(kSpan);
  }

 private:
  static constexpr std::chrono::milliseconds kSpan{1};
  Deadline end_ = Deadline::after(kSpan);
};

// A Turn holds a TurnLock as long as it lives: a Mutex, by which fibers do something one after the other. Without
// fibers one thread serves everything, and there is nothing to hold. A Turn is false where it was cancelled before it
// came.
#if COIR_NO_ASYNC
struct TurnLock {};
struct Turn {
  explicit Turn(TurnLock&) noexcept {}
  explicit operator bool() const noexcept { return true; }
};
#else
using TurnLock = Mutex;
class Turn {
 public:
  explicit Turn(TurnLock& lock) noexcept : held_(lock.lock()) {}
  explicit operator bool() const noexcept { return held_.has_value(); }

 private:
  std::expected<Mutex::Guard, Error> held_;
};
#endif

}  // namespace coir
