#pragma once

#include <coir/port/needs_fibers.h>

#include <cstdint>
#include <expected>
#include <utility>

#include <coir/atomic.h>
#include <coir/deadline.h>
#include <coir/detail/wait_list.h>
#include <coir/error.h>
#include <coir/spinlock.h>

namespace coir {

enum class Shielded : bool;

namespace detail {
class BroadcastCore;
class SubscriberCore;
}  // namespace detail

// Mutex is held by one fiber or thread at a time. A fiber may park while it holds one; whoever waits parks as well, and
// no worker is blocked. Those who wait get it in the order in which they came; whoever runs when it is given up may
// take it before them, which spares a switch for each section, but at most kMostPassed times in a row, so that none
// starves.
//
//   coir::Mutex mutex;
//   auto held = mutex.guard(deadline);      // std::expected<Mutex::Guard, Error>
//   if (!held) return std::unexpected(held.error());
//
// unlock() happens-before the return of the lock() that follows it. A fiber that ends while it holds one is named on
// standard error; the mutex stays locked, and who waits for it shows in the list of fibers as waiting for that fiber.
//
// Cost: uncontended, one atomic exchange to lock and one to unlock, and none in single-worker builds. 32 bytes.
class Mutex {
 public:
  class Guard;

  // kMostPassed is how many who came later may be served before the one who has waited longest.
  static constexpr unsigned kMostPassed = 32;

  constexpr Mutex() noexcept = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  // lock waits until the mutex is free and takes it. One that is free is had at once, by a cancelled fiber too.
  // Fiber or thread. Errors: timed_out, cancelled, deadlock (the calling fiber holds it already), unsupported
  // (core/README.md tells where).
  [[nodiscard]] std::expected<void, Error> lock(Deadline deadline = Deadline::never()) noexcept;

  // try_lock takes it if it is free.
  [[nodiscard]] bool try_lock() noexcept;

  // unlock gives it up, and calls the one who has waited longest. By the fiber that locked it, or, if a thread did, by
  // a thread: anything else stops the program with a line that says so. Never parks.
  void unlock() noexcept;

  // guard is lock whose end is that of a scope.
  [[nodiscard]] std::expected<Guard, Error> guard(Deadline deadline = Deadline::never()) noexcept;

  // locked tells whether anybody holds it at this moment.
  bool locked() const noexcept { return (word_.load(std::memory_order_relaxed) & ~kContended) != kFree; }

 private:
  friend class Condition;
  friend class detail::BroadcastCore;
  friend class detail::SubscriberCore;

  using Word = std::uintptr_t;
  static constexpr Word kFree = 0, kContended = 1, kThread = 2;

  std::expected<void, Error> lock(Deadline deadline, Shielded shielded) noexcept;
  std::expected<void, Error> lock_contended(Word self, Deadline deadline, Shielded shielded) noexcept;
  bool take(Word self, Word& seen, bool called) noexcept;
  void drop_mark() noexcept;
  bool leave_to_others(Word self) noexcept;

  // What cancellation does not reach, for those who must have it.
  std::expected<void, Error> lock_shielded() noexcept;
  Guard guard_shielded() noexcept;

  // Who holds it: a fiber's control block or kThread, or kFree; with kContended while somebody waits. mutex.cpp tells
  // how all this changes.
  Atomic<Word> word_{kFree};
  Spinlock lock_;
  bool called_ = false;
  std::uint8_t passed_ = 0;
  detail::WaitList waiters_;
};

// Guard unlocks at the end of its scope. Move-only.
class [[nodiscard]] Mutex::Guard {
 public:
  // Guard takes over a mutex that the caller has locked.
  explicit Guard(Mutex& locked) noexcept : mutex_(&locked) {}
  Guard(Guard&& other) noexcept : mutex_(std::exchange(other.mutex_, nullptr)) {}
  Guard& operator=(Guard&& other) noexcept {
    unlock();
    mutex_ = std::exchange(other.mutex_, nullptr);
    return *this;
  }
  ~Guard() { unlock(); }

  // unlock ends it early.
  void unlock() noexcept {
    if (mutex_ != nullptr) std::exchange(mutex_, nullptr)->unlock();
  }

 private:
  Mutex* mutex_;
};

inline std::expected<Mutex::Guard, Error> Mutex::guard(Deadline deadline) noexcept {
  if (auto held = lock(deadline); !held) return std::unexpected(held.error());
  return Guard(*this);
}

}  // namespace coir
