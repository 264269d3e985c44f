#include "http/concurrent/queues/offered_places.h"

#include <utility>

namespace coir::http {

bool OfferedPlaces::offer(ActivePlace& place, bool keeps_buffers, std::int64_t now_ns) noexcept {
  if (place.offered.load(std::memory_order_relaxed)) {
    place.keeps_buffers = keeps_buffers;
    if (keeps_buffers || place.counted || place.buffers == nullptr) return false;
    give_buffers(place);
    return true;
  }
  // A child has taken the connection over (Detached::from) as its handler began to wait.
  if (place.buffers == nullptr) return false;
  place.keeps_buffers = keeps_buffers;
  place.offered_ns = now_ns - place.waited_ns;
  place.offered.store(true, std::memory_order_relaxed);
  const bool at_once = place.waited_ns >= ActivePlace::kLeastWaitNs;
  at_once ? offers_.push_front(place) : offers_.push_back(place);
  return at_once;
}

void OfferedPlaces::lend(ActivePlace& place) noexcept {
  place.keeps_buffers = false;
  place.offered.store(true, std::memory_order_relaxed);
  take_away(place);
}

bool OfferedPlaces::withdraw(ActivePlace& place, std::int64_t now_ns) noexcept {
  if (!place.offered.load(std::memory_order_relaxed)) return true;
  if (!place.counted) return false;
  offers_.remove(place);
  place.waited_ns = now_ns - place.offered_ns;
  place.offered.store(false, std::memory_order_relaxed);
  return true;
}

bool OfferedPlaces::free_one(std::int64_t now_ns) noexcept {
  ActivePlace* const first = offers_.front();
  if (first == nullptr || first->offered_ns > now_ns - ActivePlace::kLeastWaitNs) return false;
  offers_.remove(*first);
  take_away(*first);
  return true;
}

bool OfferedPlaces::free_buffers() noexcept {
  ActivePlace* each = offers_.front();
  while (each != nullptr && each->keeps_buffers) each = each->next;
  if (each == nullptr) return false;
  offers_.remove(*each);
  take_away(*each);
  return true;
}

void OfferedPlaces::take_away(ActivePlace& place) noexcept {
  place.counted = false;
  place.waited_ns = ActivePlace::kLeastWaitNs;
  pool_.leave();
  if (!place.keeps_buffers) give_buffers(place);
}

void OfferedPlaces::give_buffers(ActivePlace& place) noexcept {
  pool_.keep(*std::exchange(place.buffers, nullptr));
  ++without_buffers_;
}

void OfferedPlaces::take_back(ActivePlace& place) noexcept {
  const bool offered = place.offered.exchange(false, std::memory_order_relaxed);
  if (offered && place.counted) offers_.remove(place);
  if (std::exchange(place.counted, true)) pool_.leave();
  pool_.keep(*std::exchange(place.buffers, nullptr));
}

bool OfferedPlaces::give(ActivePlace& place) noexcept {
  if (place.buffers != nullptr) {
    if (!pool_.enter()) return false;
  } else {
    place.buffers = pool_.take();
    if (place.buffers == nullptr) return false;
    --without_buffers_;
  }
  place.counted = true;
  place.offered.store(false, std::memory_order_relaxed);
  return true;
}

OfferedPlaces::Line OfferedPlaces::grant(std::int64_t now_ns) noexcept {
  Line granted;
  while (Returning* const first = line_.front()) {
    if (!give(first->place) && !(free_one(now_ns) && give(first->place))) break;
    granted.push(*line_.pop());
    --in_line_;
  }
  return granted;
}

}  // namespace coir::http
