#include <coir/semaphore.h>

#include <coir/budget.h>

#include "schedule/errand.h"
#include "wait/wait_round.h"

namespace coir {

// take takes the permits if there are enough and nobody waits. Under lock_.
bool Semaphore::take(std::uint64_t count) noexcept {
  if (!may_take(count)) return false;
  permits_.store(permits_.load(std::memory_order_relaxed) - count, std::memory_order_relaxed);
  return true;
}

bool Semaphore::try_acquire(std::uint64_t count) noexcept {
  Locked hold(lock_);
  return take(count);
}

std::expected<void, Error> Semaphore::acquire(std::uint64_t count, Deadline deadline) noexcept {
  spend_budget();
  lock_.lock();
  if (take(count)) [[likely]] {
    lock_.unlock();
    return {};
  }
  detail::WaitNode node;
  node.slot = &count;
  auto waited = detail::wait_in(lock_, waiters_, node,
                                {.kind = WaitKind::semaphore, .object = static_cast<std::int64_t>(count)}, deadline);
  if (!waited) release(0);  // what was too little for this one may do for those behind it
  return waited;
}

void Semaphore::release(std::uint64_t count) noexcept {
  if (by_worker([=, this] { release(count); })) return;
  detail::WakeList woken;
  lock_.lock();
  permits_.store(permits_.load(std::memory_order_relaxed) + count, std::memory_order_relaxed);
  // The line is served from its head as far as the permits go.
  while (!waiters_.empty()) {
    const std::uint64_t wanted = *static_cast<const std::uint64_t*>(waiters_.front()->slot);
    const std::uint64_t there = permits_.load(std::memory_order_relaxed);
    if (there < wanted) break;
    detail::WaitNode& first = *waiters_.front();
    if (detail::claim(waiters_, first)) {
      permits_.store(there - wanted, std::memory_order_relaxed);
      woken.add(first);
    }
  }
  lock_.unlock();
  woken.wake_all();
}

}  // namespace coir
