#include <coir/condition.h>

#include <coir/budget.h>
#include <coir/detail/fatal.h>

#include "wait/wait_round.h"

namespace coir {

std::expected<void, Error> Condition::wait(Mutex::Guard& guard, Deadline deadline,
                                           const std::source_location& where) noexcept {
  if (guard.mutex_ == nullptr) detail::fatal("a condition was waited for by a guard that holds no mutex", where);
  struct Held {
    Mutex& mutex;
    bool released = false;
  } held{*guard.mutex_};
  spend_budget();
  detail::WaitNode node;
  lock_.lock();
  // The mutex is given up by one who stands in line: a notification that comes once it is free finds the waiter there.
  const auto waited = detail::wait_in(
      lock_, waiters_, node, {.kind = WaitKind::condition}, deadline, Shielded::no,
      [](void* of) noexcept {
        static_cast<Held*>(of)->released = true;
        static_cast<Held*>(of)->mutex.raw_unlock();
      },
      &held);
  // A caller that could wait for the notification can wait for the mutex, too.
  if (held.released && !held.mutex.raw_lock_shielded()) guard.mutex_ = nullptr;
  return waited;
}

void Condition::notify_one() noexcept {
  lock_.lock();
  detail::WaitNode* const first = detail::take_first(waiters_);
  lock_.unlock();
  if (first != nullptr) detail::wake_winner(*first);
}

void Condition::notify_all() noexcept {
  detail::WakeList woken;
  lock_.lock();
  woken.add_all(waiters_);
  lock_.unlock();
  woken.wake_all();
}

}  // namespace coir
