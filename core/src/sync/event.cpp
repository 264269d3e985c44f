#include <coir/event.h>

#include <coir/budget.h>

#include "schedule/errand.h"
#include "wait/wait_round.h"

namespace coir {

void Event::set() noexcept {
  if (by_worker([this] { set(); })) return;
  detail::WakeList woken;
  lock_.lock();
  // release pairs with the acquire in is_set.
  set_.store(true, std::memory_order_release);
  woken.add_all(waiters_);
  lock_.unlock();
  woken.wake_all();
}

std::expected<void, Error> Event::wait(Deadline deadline) noexcept {
  spend_budget();
  // The lock is taken even if the gate is open: once it is taken, set() no longer touches this event.
  lock_.lock();
  if (set_.load(std::memory_order_acquire)) {
    lock_.unlock();
    return {};
  }
  detail::WaitNode node;
  return detail::wait_in(lock_, waiters_, node, {.kind = WaitKind::event}, deadline);
}

}  // namespace coir
