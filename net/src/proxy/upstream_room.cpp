// How many exchanges a server has at most, and who waits for one of them to end. Declared in proxy/upstream.h.
#include <coir/cancel_scope.h>

#include <algorithm>

#include "outbound/fault.h"
#include "proxy/upstream.h"

namespace coir::http {

std::expected<UpstreamMember*, Error> UpstreamGroup::reserve(const UpstreamChoice& choice, std::uint32_t tried,
                                                             Deadline& deadline) noexcept {
  RoomWaiter waiter{.tried = tried};
  {
    const Locked locked(lock_);
    if (UpstreamMember* const member = choose(choice, tried)) {
      ++member->in_use;
      ++member->tally.requests;
      return member;
    }
    bool is_any_well = false;
    for (std::size_t i = 0; !is_any_well && i < members_.size(); ++i) is_any_well = is_well(i, tried);
    if (!is_any_well) {
      unavailable_ += tried == 0;
      return std::unexpected(Error{ErrorCode::limit});
    }
    line_.push_back(waiter);
  }
  const auto member = await_room(waiter, deadline);
  if (member) deadline = std::max(deadline, Deadline::after(options_.connect));
  return member;
}

std::expected<UpstreamMember*, Error> UpstreamGroup::await_room(RoomWaiter& waiter, Deadline deadline) noexcept {
  const auto waited = waiter.handed.wait(deadline);
  if (waited) return waiter.member;
  const bool is_over = waited.error().is_late();
  UpstreamMember* member;
  {
    const Locked locked(lock_);
    member = waiter.member;
    if (member == nullptr) {
      line_.remove(waiter);
      unavailable_ += is_over && waiter.tried == 0;
      return std::unexpected(is_over ? Error{ErrorCode::busy} : waited.error());
    }
  }
  // It was handed one meanwhile, and whoever did so is about to set the event.
  {
    const Shield shield(Deadline::never());
    static_cast<void>(waiter.handed.wait());
  }
  if (is_over) return member;
  end(*member);
  return std::unexpected(waited.error());
}

// end hands a lease that is over to the exchange that has waited longest for one, and counts it on, so that nobody who
// comes later has it first.
void UpstreamGroup::end(UpstreamMember& member) noexcept {
  RoomWaiter* waiter = nullptr;
  {
    const Locked locked(lock_);
    const auto index = static_cast<std::size_t>(&member - members_.data());
    for (waiter = line_.front(); waiter != nullptr && !is_well(index, waiter->tried); waiter = waiter->next) {
    }
    if (waiter == nullptr) {
      --member.in_use;
      return;
    }
    line_.remove(*waiter);
    waiter->member = &member;
    ++member.tally.requests;
  }
  waiter->handed.set();
}

}  // namespace coir::http
