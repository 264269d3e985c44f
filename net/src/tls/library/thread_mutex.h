#pragma once

#include <coir/atomic.h>
#include <coir/config.h>
#include <coir/spinlock.h>

#include <cstdint>

#if !COIR_SINGLE_WORKER
#include <coir/port/futex.h>
#endif

namespace coir::tls {

// ThreadMutex blocks the thread, not the fiber: for calls into mbedTLS, which do not park but may take milliseconds,
// too long for a spinlock. Four bytes; in single-worker builds it does nothing.
//
// The word is 0 free, 1 held, 2 held and waited for (Drepper, "Futexes are tricky").
class ThreadMutex {
 public:
#if COIR_SINGLE_WORKER
  void lock() noexcept {}
  void unlock() noexcept {}
#else
  void lock() noexcept {
    std::uint32_t seen = 0;
    // acquire pairs with the release in unlock, here and below.
    if (word_.compare_exchange_strong(seen, 1, std::memory_order_acquire)) [[likely]]
      return;
    for (int spins = 0; spins < kSpins && seen != 2; ++spins) {
      Spinlock::relax();
      seen = 0;
      if (word_.compare_exchange_weak(seen, 1, std::memory_order_acquire)) return;
    }
    while (word_.exchange(2, std::memory_order_acquire) != 0) port::futex_wait(word_, 2, -1);
  }

  void unlock() noexcept {
    if (word_.exchange(0, std::memory_order_release) == 2) port::futex_wake(word_);
  }

 private:
  static constexpr int kSpins = 100;
  SharedAtomic<std::uint32_t> word_{0};
#endif
};

// Holding holds one for a scope.
class [[nodiscard]] Holding {
 public:
  explicit Holding(ThreadMutex& mutex) noexcept : mutex_(mutex) { mutex_.lock(); }
  ~Holding() { mutex_.unlock(); }
  Holding(const Holding&) = delete;
  Holding& operator=(const Holding&) = delete;

 private:
  ThreadMutex& mutex_;
};

}  // namespace coir::tls
