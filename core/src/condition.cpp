#include <coir/condition.h>

#include "wait_round.h"

namespace coir {

std::expected<void, Error> Condition::wait(Mutex& mutex, Deadline deadline) noexcept {
  detail::WaitNode node;
  // The line is closed until this wait stands in it: a notification that comes once the mutex is free finds it there.
  lock_.lock();
  mutex.unlock();
  const auto waited = detail::wait_in(lock_, waiters_, node, {.kind = WaitKind::condition}, deadline);
  if (auto held = mutex.lock_shielded(); !held) return held;
  return waited;
}

void Condition::notify_one() noexcept {
  lock_.lock();
  detail::WaitNode* const first = detail::take_first(waiters_);
  lock_.unlock();
  if (first != nullptr) detail::settle(*first);
}

void Condition::notify_all() noexcept {
  detail::WakeList woken;
  lock_.lock();
  woken.add_all(waiters_);
  lock_.unlock();
  woken.settle();
}

}  // namespace coir
