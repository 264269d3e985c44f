#include <coir/wait_group.h>

#include <coir/budget.h>
#include <coir/detail/fatal.h>

#include "schedule/errand.h"
#include "wait/wait_round.h"

namespace coir {

void WaitGroup::add(std::uint64_t count) noexcept {
  if (by_worker([=, this] { add(count); })) return;
  Locked hold(lock_);
  count_.store(count_.load(std::memory_order_relaxed) + count, std::memory_order_relaxed);
}

void WaitGroup::done(const std::source_location& where) noexcept {
  if (by_worker([&] { done(where); })) return;
  detail::WakeList woken;
  lock_.lock();
  const std::uint64_t before = count_.load(std::memory_order_relaxed);
  if (before == 0) {
    detail::fatal("WaitGroup::done was called more often than work was added", where);
  }
  count_.store(before - 1, std::memory_order_relaxed);
  if (before == 1) woken.add_all(waiters_);
  lock_.unlock();  // the last use of the group: a waiter may destroy it now
  woken.wake_all();
}

std::expected<void, Error> WaitGroup::wait(Deadline deadline) noexcept {
  spend_budget();
  lock_.lock();
  if (count_.load(std::memory_order_relaxed) == 0) {
    lock_.unlock();
    return {};
  }
  detail::WaitNode node;
  return detail::wait_in(lock_, waiters_, node, {.kind = WaitKind::wait_group}, deadline);
}

}  // namespace coir
