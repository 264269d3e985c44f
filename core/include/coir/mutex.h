#pragma once

#include <coir/port/needs_fibers.h>

#include <cstdint>
#include <expected>
#include <optional>
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

// Mutex is held by one fiber or thread at a time, by a Guard. A fiber may park while it holds one; whoever waits parks
// as well, and no worker is blocked. Those who wait get it in the order in which they came; whoever runs when it is
// given up may take it before them, which spares a switch for each section, but at most kMostPassed times in a row, so
// that none starves.
//
//   coir::Mutex mutex;
//   auto held = mutex.lock(deadline);       // std::expected<Mutex::Guard, Error>
//   if (!held) return std::unexpected(held.error());
//
// The end of a Guard happens-before the return of the lock() that follows it. A fiber that ends while a Guard of its
// lives on is named on standard error; the mutex stays locked, and who waits for it shows in the list of fibers as
// waiting for that fiber.
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

  // lock waits until the mutex is free and takes it. A free mutex is taken immediately, even by a cancelled fiber.
  // Fiber or thread. Errors: timed_out, cancelled, deadlock (the calling fiber holds it already), unsupported
  // (core/README.md tells where).
  [[nodiscard]] std::expected<Guard, Error> lock(Deadline deadline = Deadline::never()) noexcept;

  // try_lock takes the mutex if it is free, and returns nothing otherwise. Never parks.
  [[nodiscard]] std::optional<Guard> try_lock() noexcept;

  // locked tells whether anybody holds it at this moment.
  bool locked() const noexcept { return (word_.load(std::memory_order_relaxed) & ~kContended) != kFree; }

 private:
  friend class Condition;
  friend struct detail::Selection;
  friend class detail::BroadcastCore;
  friend class detail::SubscriberCore;

  using Word = std::uintptr_t;
  static constexpr Word kFree = 0, kContended = 1, kThread = 2;

  std::expected<void, Error> raw_lock(Deadline deadline) noexcept;
  bool raw_try_lock() noexcept;
  void raw_unlock() noexcept;
  std::expected<void, Error> raw_lock(Deadline deadline, Shielded shielded) noexcept;
  std::expected<void, Error> lock_contended(Word self, Deadline deadline, Shielded shielded) noexcept;
  bool take(Word self, Word& seen, bool called) noexcept;
  void drop_mark() noexcept;

  // For select, which stands in line without this class's loop; under lock_, but for the first. try_called is for one
  // who was called: it takes the mutex, or is to stand first in line again. mark_unless_ready marks the mutex for one
  // who then stands in line; true: it may be taken instead. holds_it tells whether the caller has it.
  bool try_called() noexcept;
  bool mark_unless_ready() noexcept;
  bool holds_it() const noexcept;
  bool leave_to_others(Word self) noexcept;

  // Cancellation does not reach these: they are for those who must have the mutex.
  std::expected<void, Error> raw_lock_shielded() noexcept;
  std::expected<Guard, Error> lock_shielded() noexcept;
  Guard guard_shielded() noexcept;

  // The holder: a fiber's control block or kThread, or kFree; with kContended while somebody waits. mutex.cpp tells
  // how all this changes.
  Atomic<Word> word_{kFree};
  Spinlock lock_;
  bool called_ = false;
  std::uint8_t passed_ = 0;
  detail::WaitList waiters_;
};

// Guard holds a mutex, and gives it up at the end of its scope. Move-only; one that was moved from or unlocked holds
// nothing.
class [[nodiscard]] Mutex::Guard {
 public:
  Guard(Guard&& other) noexcept : mutex_(std::exchange(other.mutex_, nullptr)) {}
  Guard& operator=(Guard&& other) noexcept {
    unlock();
    mutex_ = std::exchange(other.mutex_, nullptr);
    return *this;
  }
  ~Guard() { unlock(); }

  // unlock gives the mutex up early, and calls the one who has waited longest. By the fiber that locked it, or, if a
  // thread did, by a thread: anything else ends the process with a line. Never parks.
  void unlock() noexcept {
    if (mutex_ != nullptr) std::exchange(mutex_, nullptr)->raw_unlock();
  }

 private:
  friend class Mutex;
  friend class Condition;
  friend struct detail::Selection;
  explicit Guard(Mutex& locked) noexcept : mutex_(&locked) {}

  Mutex* mutex_;
};

inline std::expected<Mutex::Guard, Error> Mutex::lock(Deadline deadline) noexcept {
  if (auto held = raw_lock(deadline); !held) return std::unexpected(held.error());
  return Guard(*this);
}

inline std::optional<Mutex::Guard> Mutex::try_lock() noexcept {
  if (!raw_try_lock()) return std::nullopt;
  return Guard(*this);
}

}  // namespace coir
