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

// RwLock is held by any number of readers or by one writer. Those who wait are served in the order in which they came,
// neighbouring readers together: a reader does not pass a writer that waits, and neither starves.
//
//   RwLock lock;
//   auto reading = lock.read(deadline);     // std::expected<RwLock::Shared, Error>
//   auto writing = lock.write(deadline);    // std::expected<RwLock::Exclusive, Error>
//
// unlock() happens-before the return of every lock that it makes way for. A fiber that reads and asks to read again
// while a writer waits has locked itself out.
class RwLock {
 public:
  class Shared;
  class Exclusive;

  constexpr RwLock() noexcept = default;
  RwLock(const RwLock&) = delete;
  RwLock& operator=(const RwLock&) = delete;

  // lock_shared waits for its turn to read, lock for its turn to write. Fiber or thread.
  // Errors: timed_out, cancelled, unsupported.
  [[nodiscard]] std::expected<void, Error> lock_shared(Deadline deadline = Deadline::never()) noexcept;
  [[nodiscard]] std::expected<void, Error> lock(Deadline deadline = Deadline::never()) noexcept;

  // The locks that succeed without a wait or not at all.
  [[nodiscard]] bool try_lock_shared() noexcept;
  [[nodiscard]] bool try_lock() noexcept;

  // unlock_shared and unlock give it up and let in whoever is next. What is not locked so stops the program with a line
  // that says so. Never park.
  void unlock_shared() noexcept;
  void unlock() noexcept;

  // read and write are the same for a scope.
  [[nodiscard]] std::expected<Shared, Error> read(Deadline deadline = Deadline::never()) noexcept;
  [[nodiscard]] std::expected<Exclusive, Error> write(Deadline deadline = Deadline::never()) noexcept;

 private:
  static constexpr std::uint32_t kWriter = UINT32_MAX;

  bool enter(bool writes) noexcept;
  std::expected<void, Error> wait_for_turn(bool writes, Deadline deadline) noexcept;
  void leave(std::uint32_t left) noexcept;

  std::uint32_t holders_ = 0;  // how many read, or kWriter; under lock_
  Spinlock lock_;
  detail::WaitList waiters_;
};

// Shared and Exclusive unlock at the end of their scope. Move-only.
class [[nodiscard]] RwLock::Shared {
 public:
  explicit Shared(RwLock& locked) noexcept : lock_(&locked) {}
  Shared(Shared&& other) noexcept : lock_(std::exchange(other.lock_, nullptr)) {}
  Shared& operator=(Shared&& other) noexcept {
    unlock();
    lock_ = std::exchange(other.lock_, nullptr);
    return *this;
  }
  ~Shared() { unlock(); }
  void unlock() noexcept {
    if (lock_ != nullptr) std::exchange(lock_, nullptr)->unlock_shared();
  }

 private:
  RwLock* lock_;
};

class [[nodiscard]] RwLock::Exclusive {
 public:
  explicit Exclusive(RwLock& locked) noexcept : lock_(&locked) {}
  Exclusive(Exclusive&& other) noexcept : lock_(std::exchange(other.lock_, nullptr)) {}
  Exclusive& operator=(Exclusive&& other) noexcept {
    unlock();
    lock_ = std::exchange(other.lock_, nullptr);
    return *this;
  }
  ~Exclusive() { unlock(); }
  void unlock() noexcept {
    if (lock_ != nullptr) std::exchange(lock_, nullptr)->unlock();
  }

 private:
  RwLock* lock_;
};

inline std::expected<RwLock::Shared, Error> RwLock::read(Deadline deadline) noexcept {
  if (auto held = lock_shared(deadline); !held) return std::unexpected(held.error());
  return Shared(*this);
}
inline std::expected<RwLock::Exclusive, Error> RwLock::write(Deadline deadline) noexcept {
  if (auto held = lock(deadline); !held) return std::unexpected(held.error());
  return Exclusive(*this);
}

}  // namespace coir
