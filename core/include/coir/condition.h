#pragma once

// A fiber waits until another one changes something under a mutex.
//
//   Mutex mutex;
//   Condition changed;
//   bool ready = false;
//   auto held = mutex.lock();
//   if (!held) return complain(held.error());
//   auto outcome = changed.wait_until(*held, [&] { return ready; }, deadline);
//   show(outcome.has_value());                        // the mutex is held again, whatever the outcome

#include <coir/port/needs_fibers.h>

#include <expected>
#include <source_location>
#include <utility>

#include <coir/deadline.h>
#include <coir/detail/wait_list.h>
#include <coir/error.h>
#include <coir/mutex.h>
#include <coir/spinlock.h>

namespace coir {

// Condition is where the holder of a Mutex waits for something that the mutex guards to become so.
//
// Fibers and threads wait in one line, the oldest first. There are no spurious wakeups, but between notify and the
// return of wait others may have had the mutex.
class Condition {
 public:
  constexpr Condition() noexcept = default;
  Condition(const Condition&) = delete;
  Condition& operator=(const Condition&) = delete;

  // wait gives the mutex of `guard` up, waits for a notification and takes it again. It comes back with the mutex held
  // even when it fails; waiting for the mutex itself is neither cancelled nor timed. A notification that comes after
  // the mutex was given up is not missed. With Deadline::now(), or cancelled beforehand, it fails without giving the
  // mutex up. Fiber or thread that holds the mutex; a guard that holds nothing ends the process with a line. Errors:
  // timed_out, cancelled, unsupported (core/README.md tells where).
  [[nodiscard]] std::expected<void, Error> wait(
      Mutex::Guard& guard, Deadline deadline = Deadline::never(),
      const std::source_location& where = std::source_location::current()) noexcept;

  // wait_until repeats wait until `holds` does; it is asked with the mutex held. Errors: as wait.
  template <class Predicate>
  [[nodiscard]] std::expected<void, Error> wait_until(
      Mutex::Guard& guard, Predicate holds, Deadline deadline = Deadline::never(),
      const std::source_location& where = std::source_location::current()) {
    while (!holds()) {
      if (auto waited = wait(guard, deadline, where); !waited) {
        if (holds()) return {};
        return waited;
      }
    }
    return {};
  }

  // notify_one wakes who has waited longest, notify_all everybody. With or without the mutex; never parks.
  void notify_one() noexcept;
  void notify_all() noexcept;

 private:
  Spinlock lock_;
  detail::WaitList waiters_;
};

}  // namespace coir
