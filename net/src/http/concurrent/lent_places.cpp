// Dispatcher, of dispatcher.h: places that handlers offer, and wait for again.
#include <coir/cancel_scope.h>
#include <coir/fiber.h>

#include "http/concurrent/dispatcher.h"
#include "http/connection/coarse_clock.h"

namespace coir::http {

void Dispatcher::offer(ActivePlace& place, bool keeps_buffers) noexcept {
  const std::int64_t now = coarse_ns();
  {
    Locked locked(lock_);
    if (!places_.offer(place, keeps_buffers, now) || (!places_.any_in_line() && next() == nullptr)) return;
  }
  grant_places();
}

void Dispatcher::lend(ActivePlace& place) noexcept {
  {
    Locked locked(lock_);
    places_.lend(place);
  }
  grant_places();
}

// Nothing ends the wait but a place: the fiber cannot go on without. So it is kept from the handler's cancellations.
void Dispatcher::reclaim(ActivePlace& place) noexcept {
  const std::int64_t now = coarse_ns();
  OfferedPlaces::Returning returning(place, now);
  {
    Locked locked(lock_);
    if (places_.withdraw(place, now) || places_.retake(place)) return;
    if (places_.free_one(now) && places_.retake(place)) return;
    places_.wait_in_line(returning);
  }
  hurry_.set();
  const Shield shield(Deadline::never());
  while (!returning.granted.wait()) {
  }
}

void Dispatcher::grant_places() noexcept {
  OfferedPlaces::Line granted;
  {
    Locked locked(lock_);
    granted = places_.grant(coarse_ns());
  }
  tell(granted);
  spawn_missing();
}

// tell wakes those that have got places. One that has woken is gone.
void Dispatcher::tell(OfferedPlaces::Line granted) noexcept {
  while (OfferedPlaces::Returning* const returning = granted.pop()) returning->granted.set();
}

Dispatcher::Lack Dispatcher::lack(std::int64_t since_ns) noexcept {
  Locked locked(lock_);
  const Connection* const first = next();
  const bool held_up = places_.any_in_line_since(since_ns) || (first != nullptr && first->since_ns <= since_ns);
  if (!held_up) return Lack::nothing;
  if (pool_.starved()) return Lack::memory;
  if (!pool_.available()) return Lack::place;
  return stackless_ ? Lack::memory : Lack::nothing;
}

bool Dispatcher::await_hurry(std::chrono::nanoseconds calm) noexcept {
  if (const auto hurried = hurry_.wait(Deadline::after(calm)); hurried) {
    hurry_.reset();
    if (sleep(std::chrono::nanoseconds(ActivePlace::kLeastWaitNs))) return true;
  } else if (hurried.error() == ErrorCode::timed_out) {
    return true;
  }
  // Pairs with the lock in at_work, by which the server is destroyed behind this wait.
  const Locked locked(lock_);
  return false;
}

}  // namespace coir::http
