#include <coir/rw_lock.h>

#include <coir/budget.h>

#include "wait/wait_round.h"

namespace coir {

namespace {

// A waiting writer points here, a waiting reader to nothing.
constinit char g_writes = 0;

}  // namespace

// enter takes the lock if its holders allow it and nobody waits. Under lock_.
bool RwLock::enter(bool writes) noexcept {
  if (!waiters_.empty() || holders_ == kWriter || (writes && holders_ != 0)) return false;
  holders_ = writes ? kWriter : holders_ + 1;
  return true;
}

bool RwLock::try_enter(bool writes) noexcept {
  Locked hold(lock_);
  return enter(writes);
}

std::expected<void, Error> RwLock::wait_for_turn(bool writes, Deadline deadline) noexcept {
  spend_budget();
  lock_.lock();
  if (enter(writes)) {
    lock_.unlock();
    return {};
  }
  detail::WaitNode node;
  node.slot = writes ? &g_writes : nullptr;
  auto waited = detail::wait_in(lock_, waiters_, node,
                                {.kind = writes ? WaitKind::exclusive_lock : WaitKind::shared_lock}, deadline);
  if (!waited) {
    lock_.lock();
    leave(0);  // readers behind a writer that gave up have waited long enough
  }
  return waited;
}

void RwLock::unlock(std::uint32_t left) noexcept {
  lock_.lock();
  leave(left);
}

// leave takes `left` from the holders and lets in the first in line, and with a reader all readers right behind it.
// Called with lock_ held, which it gives up.
void RwLock::leave(std::uint32_t left) noexcept {
  detail::WakeList woken;
  holders_ -= left;
  while (!waiters_.empty() && holders_ != kWriter) {
    detail::WaitNode& first = *waiters_.front();
    const bool writes = first.slot != nullptr;
    if (writes && holders_ != 0) break;
    if (detail::claim(waiters_, first)) {
      holders_ = writes ? kWriter : holders_ + 1;
      woken.add(first);
    }
  }
  lock_.unlock();
  woken.wake_all();
}

}  // namespace coir
