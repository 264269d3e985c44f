#pragma once

#include <coir/config.h>
#include <coir/deadline.h>

#include <expected>
#include <optional>

#if !COIR_NO_ASYNC
#include <coir/atomic.h>
#include <coir/fiber.h>
#include <coir/mutex.h>
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

// A TurnLock is a Mutex, by which fibers do something one after the other. Without fibers one thread serves everything,
// and the lock is always free.
#if COIR_NO_ASYNC
struct TurnLock {
  struct Guard {};
  static std::expected<Guard, Error> lock(Deadline = Deadline::never()) noexcept { return Guard{}; }
  static std::optional<Guard> try_lock() noexcept { return Guard{}; }
};
#else
using TurnLock = Mutex;
#endif

}  // namespace coir
