#pragma once

// A one-bit gate.
//
//   Event ready;
//   spawn([&] { ready.set(); }).detach();                                       // one fiber
//   if (auto open = ready.wait(deadline); !open) return complain(open.error()); // another

#include <coir/port/needs_fibers.h>

#include <expected>

#include <coir/atomic.h>
#include <coir/deadline.h>
#include <coir/detail/fatal.h>
#include <coir/detail/wait_list.h>
#include <coir/error.h>
#include <coir/spinlock.h>

namespace coir {

// Event is a one-bit gate that fibers and threads wait on.
//
// set() happens-before the return of every wait() that it releases.
class Event {
 public:
  constexpr Event() noexcept = default;
  // An event that somebody waits on ends the process with a line.
  ~Event() {
    if (!waiters_.empty()) [[unlikely]]
      detail::fatal("an event was destroyed while somebody waited on it");
  }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  // set opens the gate and releases every waiter. Idempotent; never parks; from any context but a signal handler. In
  // a single-worker build another thread waits until the worker has done it. A caller that returns from wait() may
  // destroy the event.
  void set() noexcept;

  // reset closes the gate. Waiters that set() has released stay released.
  void reset() noexcept { set_.exchange(false, std::memory_order_acq_rel); }

  // is_set tells whether the gate is open; what was written before set() is then visible.
  bool is_set() const noexcept { return set_.load(std::memory_order_acquire); }

  // wait returns at once if the gate is open, else parks the caller until set(), the deadline or cancellation. Fiber or
  // thread. Errors: timed_out, cancelled, unsupported.
  [[nodiscard]] std::expected<void, Error> wait(Deadline deadline = Deadline::never()) noexcept;

 private:
  friend struct detail::Selection;

  Atomic<bool> set_{false};
  Spinlock lock_;
  detail::WaitList waiters_;
};

}  // namespace coir
