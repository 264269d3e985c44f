#pragma once

// Stands in the place of core's coir/atomic.h where interleavings are explored: each operation is a step before which
// another thread may go on. tests/explore/README.md tells how.

#include <atomic>
#include <cstring>
#include <source_location>
#include <type_traits>

#include "tests/explore/steps.h"

namespace coir {

inline constexpr bool kManyWorkers = true;

template <class T>
class Atomic {
  using Order = std::memory_order;
  using Where = std::source_location;
  using Step = explore::Step;
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(std::uint64_t));

 public:
  constexpr Atomic() noexcept = default;
  constexpr Atomic(T value) noexcept : value_(value) {}
  constexpr ~Atomic() {
    if (!std::is_constant_evaluated()) explore::forget_buffered();  // the memory is about to be something else's
  }
  Atomic(const Atomic&) = delete;
  Atomic& operator=(const Atomic&) = delete;

  T load(Order order = Order::seq_cst, Where where = Where::current()) const noexcept {
    explore::before(Step::load, &value_, order, where);
    T value = value_;
    explore::see_own_buffered(&value_, &value, sizeof value);
    explore::loaded(&value_, bits(value));
    return value;
  }
  void store(T value, Order order = Order::seq_cst, Where where = Where::current()) noexcept {
    explore::before(Step::store, &value_, order, where);
    explore::store(&value_, bits(value), sizeof value, order);
  }
  T exchange(T value, Order order = Order::seq_cst, Where where = Where::current()) noexcept {
    explore::before(Step::exchange, &value_, order, where);
    return replace(value);
  }
  bool compare_exchange_strong(T& expected, T value, Order order = Order::seq_cst, Order = Order::seq_cst,
                               Where where = Where::current()) noexcept {
    explore::before(Step::compare, &value_, order, where);
    if (bits(value_) == bits(expected)) {
      replace(value);
      return true;
    }
    expected = value_;
    explore::loaded(&value_, bits(value_));
    return false;
  }
  bool compare_exchange_weak(T& expected, T value, Order order = Order::seq_cst, Order failure = Order::seq_cst,
                             Where where = Where::current()) noexcept {
    return compare_exchange_strong(expected, value, order, failure, where);
  }
  T fetch_add(T value, Order order = Order::seq_cst, Where where = Where::current()) noexcept {
    explore::before(Step::update, &value_, order, where);
    return replace(static_cast<T>(value_ + value));
  }
  T fetch_sub(T value, Order order = Order::seq_cst, Where where = Where::current()) noexcept {
    explore::before(Step::update, &value_, order, where);
    return replace(static_cast<T>(value_ - value));
  }
  T fetch_or(T value, Order order = Order::seq_cst, Where where = Where::current()) noexcept {
    explore::before(Step::update, &value_, order, where);
    return replace(static_cast<T>(value_ | value));
  }
  T fetch_and(T value, Order order = Order::seq_cst, Where where = Where::current()) noexcept {
    explore::before(Step::update, &value_, order, where);
    return replace(static_cast<T>(value_ & value));
  }

 private:
  static std::uint64_t bits(const T& value) noexcept {
    std::uint64_t out = 0;
    std::memcpy(&out, &value, sizeof value);
    return out;
  }
  T replace(T value) noexcept {
    T old = value_;
    value_ = value;
    explore::written(&value_, bits(value));
    return old;
  }

  T value_{};
};

template <class T>
using SharedAtomic = Atomic<T>;

inline void full_fence(std::source_location where = std::source_location::current()) noexcept {
  explore::before(explore::Step::fence, nullptr, std::memory_order_seq_cst, where);
}

consteval int spins(int) noexcept {
  return 1;
}

template <class T>
inline void bump(Atomic<T>& counter, T by = 1, std::source_location where = std::source_location::current()) noexcept {
  counter.store(static_cast<T>(counter.load(std::memory_order_relaxed, where) + by), std::memory_order_relaxed, where);
}

}  // namespace coir
