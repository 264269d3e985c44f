#include <functional>

#include "sync/selection.h"

namespace coir::detail {

bool Selection::line_up(WaitRound& round, FiberControl* self) noexcept {
  sort_by_lock();
  const Spinlock* last = nullptr;
  for (Case* one = first_locked; one != nullptr; one = one->next_locked_) {
    if (&lock(*one) != last) lock(*one).lock();
    last = &lock(*one);
  }
  bool ready = false;
  for (Case* one = first_locked; one != nullptr && !ready; one = one->next_locked_) ready = may_be_ready(*one);
  if (!ready) {
    if (self != nullptr) {
      arm(self);
    } else {
      round.waiter->arm(0);
    }
    for (Case& one : std::span(cases, count)) {
      if (!lines_up(one)) continue;
      one.round = &round;
      one.closed = false;
      one.replaces = one.kind_ == Kind::receive;
      line(one).push(one);
    }
  }
  last = nullptr;
  for (Case* one = first_locked; one != nullptr; one = one->next_locked_) {
    if (&lock(*one) != last) lock(*one).unlock();
    last = &lock(*one);
  }
  return !ready;
}

// may_be_ready tells whether it is worth a look. Under its lock.
bool Selection::may_be_ready(const Case& one) noexcept {
  if (one.kind_ == Kind::event) return event(one).is_set();
  if (one.kind_ == Kind::cancellation) return source(one).cancelled();
  if (one.kind_ == Kind::semaphore) return semaphore(one).may_take(one.wanted_);
  if (one.kind_ == Kind::mutex) return mutex(one).mark_unless_ready();
  return one.kind_ == Kind::send ? channel(one).may_send() : channel(one).may_receive();
}

bool Selection::line_is_ready() const noexcept {
  for (const Case& one : std::span(cases, count)) {
    if (!lines_up(one)) continue;
    Locked hold(lock(one));
    if (may_be_ready(one)) return true;
  }
  return false;
}

void Selection::leave_line(Case& one) noexcept {
  {
    Locked hold(lock(one));
    if (one.queued) line(one).remove(one);
    if (one.kind_ == Kind::mutex) mutex(one).drop_mark();
  }
  // Permits that were too few for this waiter may suffice for the waiters behind it.
  if (one.kind_ == Kind::semaphore) semaphore(one).release(0);
}

bool Selection::keep_guard(Case& one) noexcept {
  one.first = !mutex(one).try_called();
  if (one.first) return false;
  static_cast<std::optional<Mutex::Guard>*>(one.slot)->emplace(Mutex::Guard(mutex(one)));
  return true;
}

// sort_by_lock links the cases that line up in the order of their locks' addresses.
void Selection::sort_by_lock() noexcept {
  first_locked = nullptr;
  for (Case& one : std::span(cases, count)) {
    if (!lines_up(one)) continue;
    Case** at = &first_locked;
    while (*at != nullptr && std::less<>()(&lock(**at), &lock(one))) at = &(*at)->next_locked_;
    one.next_locked_ = *at;
    *at = &one;
  }
}

}  // namespace coir::detail
