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

// RwLock is held by any number of readers or by one writer. Those who wait are served in the order in which they came,
// neighbouring readers together: a reader does not pass a writer that waits, and neither starves.
//
//   RwLock lock;
//   auto reading = lock.read(deadline);     // std::expected<RwLock::Shared, Error>
//   auto writing = lock.write(deadline);    // std::expected<RwLock::Exclusive, Error>
//
// The end of a guard happens-before the return of every read and write that waited for it. A fiber that reads and
// asks to read again while a writer waits has locked itself out.
class RwLock {
 public:
  class Shared;
  class Exclusive;

  constexpr RwLock() noexcept = default;
  RwLock(const RwLock&) = delete;
  RwLock& operator=(const RwLock&) = delete;

  // read waits for its turn to read, write for its turn to write. A lock that is free is taken immediately, even by a
  // cancelled fiber. Fiber or thread. Errors: timed_out, cancelled, unsupported (core/README.md tells where).
  [[nodiscard]] std::expected<Shared, Error> read(Deadline deadline = Deadline::never()) noexcept;
  [[nodiscard]] std::expected<Exclusive, Error> write(Deadline deadline = Deadline::never()) noexcept;

  // try_read and try_write succeed without a wait, or return nothing.
  [[nodiscard]] std::optional<Shared> try_read() noexcept;
  [[nodiscard]] std::optional<Exclusive> try_write() noexcept;

 private:
  static constexpr std::uint32_t kWriter = UINT32_MAX;

  bool try_enter(bool writes) noexcept;
  bool enter(bool writes) noexcept;
  std::expected<void, Error> wait_for_turn(bool writes, Deadline deadline) noexcept;
  void unlock(std::uint32_t left) noexcept;
  void leave(std::uint32_t left) noexcept;

  std::uint32_t holders_ = 0;  // how many read, or kWriter; under lock_
  Spinlock lock_;
  detail::WaitList waiters_;
};

// Shared and Exclusive hold the lock, and give it up at the end of their scope. Move-only; unlock gives it up early,
// lets in whoever is next and never parks. Any fiber or thread may end one.
class [[nodiscard]] RwLock::Shared {
 public:
  Shared(Shared&& other) noexcept : lock_(std::exchange(other.lock_, nullptr)) {}
  Shared& operator=(Shared&& other) noexcept {
    unlock();
    lock_ = std::exchange(other.lock_, nullptr);
    return *this;
  }
  ~Shared() { unlock(); }
  void unlock() noexcept {
    if (lock_ != nullptr) std::exchange(lock_, nullptr)->unlock(1);
  }

 private:
  friend class RwLock;
  explicit Shared(RwLock& locked) noexcept : lock_(&locked) {}

  RwLock* lock_;
};

class [[nodiscard]] RwLock::Exclusive {
 public:
  Exclusive(Exclusive&& other) noexcept : lock_(std::exchange(other.lock_, nullptr)) {}
  Exclusive& operator=(Exclusive&& other) noexcept {
    unlock();
    lock_ = std::exchange(other.lock_, nullptr);
    return *this;
  }
  ~Exclusive() { unlock(); }
  void unlock() noexcept {
    if (lock_ != nullptr) std::exchange(lock_, nullptr)->unlock(kWriter);
  }

 private:
  friend class RwLock;
  explicit Exclusive(RwLock& locked) noexcept : lock_(&locked) {}

  RwLock* lock_;
};

inline std::expected<RwLock::Shared, Error> RwLock::read(Deadline deadline) noexcept {
  if (auto held = wait_for_turn(false, deadline); !held) return std::unexpected(held.error());
  return Shared(*this);
}
inline std::expected<RwLock::Exclusive, Error> RwLock::write(Deadline deadline) noexcept {
  if (auto held = wait_for_turn(true, deadline); !held) return std::unexpected(held.error());
  return Exclusive(*this);
}
inline std::optional<RwLock::Shared> RwLock::try_read() noexcept {
  if (!try_enter(false)) return std::nullopt;
  return Shared(*this);
}
inline std::optional<RwLock::Exclusive> RwLock::try_write() noexcept {
  if (!try_enter(true)) return std::nullopt;
  return Exclusive(*this);
}

}  // namespace coir
