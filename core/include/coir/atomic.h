#pragma once

// Atomics that are plain variables in a build with one worker.
//
//   Atomic<std::uint64_t> requests = 0;
//   requests.fetch_add(1, std::memory_order_relaxed);
//   show(requests.load(std::memory_order_relaxed));

#include <coir/config.h>
#include <coir/port/atomic.h>

namespace coir {

// kManyWorkers tells whether fibers of this build run on several threads. With one worker every Atomic is a plain
// variable and every Spinlock is empty: nothing else runs while a fiber does.
#if COIR_SINGLE_WORKER
inline constexpr bool kManyWorkers = false;

// Atomic has SharedAtomic's interface without its instructions.
template <class T>
class Atomic {
 public:
  constexpr Atomic() noexcept = default;
  constexpr Atomic(T value) noexcept : value_(value) {}
  Atomic(const Atomic&) = delete;
  Atomic& operator=(const Atomic&) = delete;

  T load(std::memory_order = std::memory_order_seq_cst) const noexcept { return value_; }
  void store(T value, std::memory_order = std::memory_order_seq_cst) noexcept { value_ = value; }
  T exchange(T value, std::memory_order = std::memory_order_seq_cst) noexcept {
    T old = value_;
    value_ = value;
    return old;
  }
  bool compare_exchange_strong(T& expected, T value, std::memory_order = std::memory_order_seq_cst,
                               std::memory_order = std::memory_order_seq_cst) noexcept {
    if (value_ == expected) {
      value_ = value;
      return true;
    }
    expected = value_;
    return false;
  }
  bool compare_exchange_weak(T& expected, T value, std::memory_order success = std::memory_order_seq_cst,
                             std::memory_order failure = std::memory_order_seq_cst) noexcept {
    return compare_exchange_strong(expected, value, success, failure);
  }
  T fetch_add(T value, std::memory_order = std::memory_order_seq_cst) noexcept {
    T old = value_;
    value_ = static_cast<T>(value_ + value);
    return old;
  }
  T fetch_sub(T value, std::memory_order = std::memory_order_seq_cst) noexcept {
    T old = value_;
    value_ = static_cast<T>(value_ - value);
    return old;
  }
  T fetch_or(T value, std::memory_order = std::memory_order_seq_cst) noexcept {
    T old = value_;
    value_ = static_cast<T>(value_ | value);
    return old;
  }
  T fetch_and(T value, std::memory_order = std::memory_order_seq_cst) noexcept {
    T old = value_;
    value_ = static_cast<T>(value_ & value);
    return old;
  }

 private:
  T value_{};
};
#else
inline constexpr bool kManyWorkers = true;

template <class T>
using Atomic = SharedAtomic<T>;
#endif

// full_fence keeps what was stored before it ahead of what is loaded after it. The thread sanitizer does not understand
// fences: its builds use a locked instruction.
inline void full_fence() noexcept {
#if COIR_TSAN
  static constinit SharedAtomic<int> word{0};
  word.fetch_add(0, std::memory_order_seq_cst);
#else
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

// spins is how often a loop looks again before it does something dearer: once in builds that explore interleavings.
consteval int spins(int usual) noexcept {
  return usual;
}

// bump adds to a counter that only one thread writes and any may read: a load and a store, never a locked instruction.
template <class T>
inline void bump(Atomic<T>& counter, T by = 1) noexcept {
  counter.store(static_cast<T>(counter.load(std::memory_order_relaxed) + by), std::memory_order_relaxed);
}

}  // namespace coir
