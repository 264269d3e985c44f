#pragma once

// A lock for a few instructions that never wait.
//
//   Spinlock lock;
//   int count = 0;
//   {
//     const Locked locked(lock);
//     ++count;
//   }

#include <coir/atomic.h>
#include <coir/config.h>
#include <coir/port/cpu.h>
#include <coir/port/spinning.h>

namespace coir {

// SpinWait paces a loop that waits for the next few instructions of another thread. If they do not come soon, that thread
// has lost its CPU, perhaps to the caller: from then on each pause yields to the kernel.
class SpinWait {
 public:
  void pause() noexcept {
    if (spun_ < kSpins) {
      ++spun_;
      port::relax();
    } else {
      yield_cpu();
    }
  }

 private:
  static constexpr int kSpins = spins(128);      // some microseconds, longer than any lock is held
  COIR_RARELY static void yield_cpu() noexcept;  // base/spinlock.cpp
  int spun_ = 0;
};

// Spinlock guards a few instructions that never park, wake, allocate, destroy what they do not know, or make a system
// call; debug and sanitizer builds check that (port/spinning.h). In a single-worker build it is empty, but for that check.
// Usable with Locked from fibers and threads; never from a signal handler.
class Spinlock {
 public:
  void lock() noexcept {
    if constexpr (kManyWorkers) {
      // acquire pairs with the release in unlock.
      if (held_.exchange(true, std::memory_order_acquire)) [[unlikely]]
        lock_contended();
    }
    port::begin_spinning();
  }
  void unlock() noexcept {
    port::end_spinning();
    if constexpr (kManyWorkers) held_.store(false, std::memory_order_release);
  }

  // relax tells the CPU that this is a spin.
  static void relax() noexcept { port::relax(); }

 private:
#if !COIR_SINGLE_WORKER
  COIR_RARELY void lock_contended() noexcept;  // base/spinlock.cpp
#else
  void lock_contended() noexcept {}
#endif
#if COIR_SINGLE_WORKER
  [[no_unique_address]] struct {
    bool exchange(bool, std::memory_order) noexcept { return false; }
    bool load(std::memory_order) const noexcept { return false; }
    void store(bool, std::memory_order) noexcept {}
  } held_;
#else
  Atomic<bool> held_{false};
#endif
};

// Locked holds a Spinlock for a scope.
class [[nodiscard]] Locked {
 public:
  explicit Locked(Spinlock& lock) noexcept : lock_(lock) { lock_.lock(); }
  ~Locked() { lock_.unlock(); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  Spinlock& lock_;
};

}  // namespace coir
