#pragma once

// A loop over calls that succeed at once yields to other fibers.
//
//   while (read(fd, buffer, sizeof buffer) > 0) spend_budget(kSystemCallCost);      // of a program's own reads

#include <coir/config.h>

#if !COIR_NO_ASYNC
#include <coir/port/cpu.h>
#include <coir/port/spinning.h>

#include <cstdint>
#endif

namespace coir {

// The budget keeps a fiber whose waits never park from keeping its worker: one whose data is always there, or one in a
// scope that has ended, where each wait fails at once. Each call of coir that can wait spends from the budget first,
// whether it then parks, succeeds or fails. A fiber that has spent it without a switch lets the other fibers of its
// worker run, as yield does. A fiber makes at most 2 * kBudget such calls in a row.
//
// So every call that can wait may switch, even if it does not have to wait. Costs a decrement, less than 1 ns. Does
// nothing on plain threads, on a worker's own stack, and in builds without fibers.
inline constexpr int kBudget = 128;
inline constexpr int kSystemCallCost = 16;

#if COIR_NO_ASYNC
inline void spend_budget(int = 1) noexcept {}

namespace detail {

struct [[maybe_unused]] BudgetAside {};

}  // namespace detail
#else
namespace detail {

// t_budget is what is left to the calling thread. An address of it that a fiber has kept over a switch is another
// thread's, which then yields a little earlier or later: hence relaxed, and no more.
extern constinit thread_local std::int32_t t_budget;

// spent runs when nothing is left; it may yield.
COIR_RARELY void spent() noexcept;

}  // namespace detail

inline void spend_budget(int cost = 1) noexcept {
  port::expect_no_spinlock("a call that can wait");
  const std::int32_t left = __atomic_load_n(&detail::t_budget, __ATOMIC_RELAXED) - cost;
  __atomic_store_n(&detail::t_budget, left, __ATOMIC_RELAXED);
  if (left <= 0) [[unlikely]]
    detail::spent();
}

namespace detail {

// BudgetAside lets what is called meanwhile spend without an end: for code that must not yield, because it holds what
// others would spin for. It must not wait either: the same thread ends it.
class [[nodiscard]] BudgetAside {
 public:
  BudgetAside() noexcept : left_(__atomic_load_n(&t_budget, __ATOMIC_RELAXED)) {
    __atomic_store_n(&t_budget, INT32_MAX, __ATOMIC_RELAXED);
  }
  ~BudgetAside() { __atomic_store_n(&t_budget, left_, __ATOMIC_RELAXED); }
  BudgetAside(const BudgetAside&) = delete;
  BudgetAside& operator=(const BudgetAside&) = delete;

 private:
  const std::int32_t left_;
};

}  // namespace detail
#endif

}  // namespace coir
