#pragma once

// Waits until a number of things is done.
//
//   WaitGroup group;
//   for (int i = 0; i < 4; ++i) {
//     group.add();
//     spawn([&] { group.done(); }).detach();
//   }
//   if (auto done = group.wait(deadline); !done) return complain(done.error());

#include <coir/port/needs_fibers.h>

#include <cstdint>
#include <expected>
#include <source_location>

#include <coir/atomic.h>
#include <coir/deadline.h>
#include <coir/detail/fatal.h>
#include <coir/detail/wait_list.h>
#include <coir/error.h>
#include <coir/spinlock.h>

namespace coir {

// WaitGroup counts work that is under way, and lets others wait until there is none.
//
// done() happens-before the return of the wait() that it releases.
class WaitGroup {
 public:
  explicit constexpr WaitGroup(std::uint64_t count = 0) noexcept : count_(count) {}
  // A group that somebody waits on ends the process with a line.
  ~WaitGroup() {
    if (!waiters_.empty()) [[unlikely]]
      detail::fatal("a wait group was destroyed while somebody waited on it");
  }
  WaitGroup(const WaitGroup&) = delete;
  WaitGroup& operator=(const WaitGroup&) = delete;

  // add announces more work. Before the work starts, and before whoever is to wait for it waits.
  void add(std::uint64_t count = 1) noexcept;

  // done tells that one piece is over; the last releases everybody who waits. More of them than were added stops the
  // program with a line that says so. Never parks.
  void done(const std::source_location& where = std::source_location::current()) noexcept;

  // wait returns when the count is zero, at once if it is. Fiber or thread. Errors: timed_out, cancelled, unsupported.
  [[nodiscard]] std::expected<void, Error> wait(Deadline deadline = Deadline::never()) noexcept;

  std::uint64_t count() const noexcept { return count_.load(std::memory_order_relaxed); }

 private:
  Atomic<std::uint64_t> count_;  // changes under lock_
  Spinlock lock_;
  detail::WaitList waiters_;
};

}  // namespace coir
