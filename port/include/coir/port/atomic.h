#pragma once

// The atomics that coir uses, lighter to parse than <atomic>.
//
//   SharedAtomic<int> ready{0};
//   ready.store(1, std::memory_order_release);                                // one thread
//   if (ready.load(std::memory_order_acquire) == 1) show("it is ready");      // another

#if __has_include(<__atomic/memory_order.h>)
#include <__atomic/memory_order.h>  // libc++: std::memory_order without the rest of <atomic>
#else
#include <atomic>
#endif

namespace coir {

// SharedAtomic is the part of std::atomic that coir uses, written on the compiler's builtins: parsing <atomic> takes
// longer than all else that most public headers include. Always lock-free: T is a trivial type of at most a word, or of
// eight bytes. Any thread, and signal handlers.
template <class T>
class SharedAtomic {
 public:
  constexpr SharedAtomic() noexcept = default;
  constexpr SharedAtomic(T value) noexcept : value_(value) {}
  SharedAtomic(const SharedAtomic&) = delete;
  SharedAtomic& operator=(const SharedAtomic&) = delete;

  T load(std::memory_order order = std::memory_order_seq_cst) const noexcept {
    T value;
    __atomic_load(&value_, &value, static_cast<int>(order));
    return value;
  }
  void store(T value, std::memory_order order = std::memory_order_seq_cst) noexcept {
    __atomic_store(&value_, &value, static_cast<int>(order));
  }
  T exchange(T value, std::memory_order order = std::memory_order_seq_cst) noexcept {
    T old;
    __atomic_exchange(&value_, &value, &old, static_cast<int>(order));
    return old;
  }
  bool compare_exchange_strong(T& expected, T value, std::memory_order order = std::memory_order_seq_cst) noexcept {
    return compare_exchange_strong(expected, value, order, on_failure(order));
  }
  bool compare_exchange_strong(T& expected, T value, std::memory_order success, std::memory_order failure) noexcept {
    return __atomic_compare_exchange(&value_, &expected, &value, false, static_cast<int>(success),
                                     static_cast<int>(failure));
  }
  bool compare_exchange_weak(T& expected, T value, std::memory_order order = std::memory_order_seq_cst) noexcept {
    return compare_exchange_weak(expected, value, order, on_failure(order));
  }
  bool compare_exchange_weak(T& expected, T value, std::memory_order success, std::memory_order failure) noexcept {
    return __atomic_compare_exchange(&value_, &expected, &value, true, static_cast<int>(success),
                                     static_cast<int>(failure));
  }
  T fetch_add(T value, std::memory_order order = std::memory_order_seq_cst) noexcept {
    return __atomic_fetch_add(&value_, value, static_cast<int>(order));
  }
  T fetch_sub(T value, std::memory_order order = std::memory_order_seq_cst) noexcept {
    return __atomic_fetch_sub(&value_, value, static_cast<int>(order));
  }
  T fetch_or(T value, std::memory_order order = std::memory_order_seq_cst) noexcept {
    return __atomic_fetch_or(&value_, value, static_cast<int>(order));
  }
  T fetch_and(T value, std::memory_order order = std::memory_order_seq_cst) noexcept {
    return __atomic_fetch_and(&value_, value, static_cast<int>(order));
  }

 private:
  static_assert(__is_trivially_copyable(T) && __atomic_always_lock_free(sizeof(T), nullptr));

  // on_failure is `order` without what only a store can have.
  static constexpr std::memory_order on_failure(std::memory_order order) noexcept {
    if (order == std::memory_order_acq_rel) return std::memory_order_acquire;
    return order == std::memory_order_release ? std::memory_order_relaxed : order;
  }

  alignas(sizeof(T)) T value_{};
};

}  // namespace coir
