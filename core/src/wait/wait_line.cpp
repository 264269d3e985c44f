#include <coir/detail/wait_line.h>

#include "fiber/waiter.h"

namespace coir::detail {

void WaitLine::add(WaitPlace& place) noexcept {
  place.next = nullptr;
  *last_ = &place;
  last_ = &place.next;
}

void WaitLine::remove(WaitPlace& place) noexcept {
  for (WaitPlace** link = &first_; *link != nullptr; link = &(*link)->next) {
    if (*link != &place) continue;
    *link = place.next;
    if (last_ == &place.next) last_ = link;
    return;
  }
}

WaitPlace* WaitLine::claim_first(Waiter*& woken) noexcept {
  while (first_ != nullptr) {
    WaitPlace* const place = first_;
    Waiter* const waiter = place->waiter;
    first_ = place->next;
    if (first_ == nullptr) last_ = &first_;
    const Waiter::Claim claim = waiter->claim(WakeReason::ready);
    if (claim == Waiter::Claim::lost) continue;
    woken = claim == Waiter::Claim::parked ? waiter : nullptr;
    return place;
  }
  woken = nullptr;
  return nullptr;
}

}  // namespace coir::detail
