#pragma once

#include <coir/atomic.h>
#include <coir/config.h>
#include <coir/port/cpu.h>

namespace coir {

// Spinlock guards a few instructions that never park, allocate or make a system call. In a single-worker build it is
// empty. Usable with Locked from fibers and threads; never from a signal handler.
class Spinlock {
 public:
  void lock() noexcept {
    if constexpr (kManyWorkers) {
      // acquire pairs with the release in unlock.
      while (held_.exchange(true, std::memory_order_acquire)) {
        while (held_.load(std::memory_order_relaxed)) relax();
      }
    }
  }
  void unlock() noexcept {
    if constexpr (kManyWorkers) held_.store(false, std::memory_order_release);
  }

  // relax tells the CPU that this is a spin.
  static void relax() noexcept { port::relax(); }

 private:
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
