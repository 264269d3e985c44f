#pragma once

// A number of permits.
//
//   Semaphore places(4);
//   if (auto taken = places.acquire(deadline); !taken) return complain(taken.error());      // waits for a permit
//   ...
//   places.release();

#include <coir/port/needs_fibers.h>

#include <cstdint>
#include <expected>

#include <coir/atomic.h>
#include <coir/deadline.h>
#include <coir/detail/wait_list.h>
#include <coir/error.h>
#include <coir/spinlock.h>

namespace coir {

// Semaphore holds a number of permits. A caller that wants more than there are waits in line, first come first served:
// a small request does not pass a large one that came before.
//
// release() happens-before the return of the acquire() that gets its permits.
class Semaphore {
 public:
  explicit constexpr Semaphore(std::uint64_t permits) noexcept : permits_(permits) {}
  Semaphore(const Semaphore&) = delete;
  Semaphore& operator=(const Semaphore&) = delete;

  // acquire takes `count` permits, all or none, and waits until it can. Fiber or thread.
  // Errors: timed_out, cancelled, unsupported.
  [[nodiscard]] std::expected<void, Error> acquire(std::uint64_t count, Deadline deadline = Deadline::never()) noexcept;
  [[nodiscard]] std::expected<void, Error> acquire(Deadline deadline = Deadline::never()) noexcept {
    return acquire(1, deadline);
  }

  // try_acquire takes them if they are there and nobody waits.
  [[nodiscard]] bool try_acquire(std::uint64_t count = 1) noexcept;

  // release gives permits back, or new ones, and hands them to whoever is first in line. Never parks.
  void release(std::uint64_t count = 1) noexcept;

  // available is how many there are at this moment.
  std::uint64_t available() const noexcept { return permits_.load(std::memory_order_relaxed); }

 private:
  friend struct detail::Selection;

  // may_take tells whether take would succeed. Under lock_.
  bool may_take(std::uint64_t count) const noexcept {
    return permits_.load(std::memory_order_relaxed) >= count && waiters_.empty();
  }
  bool take(std::uint64_t count) noexcept;

  Atomic<std::uint64_t> permits_;  // changes under lock_
  Spinlock lock_;
  detail::WaitList waiters_;
};

}  // namespace coir
