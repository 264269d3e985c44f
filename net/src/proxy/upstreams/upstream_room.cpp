// How many exchanges a server has at most, and who waits for room at one. Declared in proxy/upstreams/upstream.h.
#include <coir/cancel_scope.h>

#include <algorithm>

#include "outbound/fault.h"
#include "proxy/upstreams/upstream.h"

namespace coir::http {

std::expected<UpstreamMember*, Error> UpstreamGroup::reserve(const UpstreamChoice& choice, std::uint32_t tried,
                                                             Deadline& deadline) noexcept {
  RoomWaiter waiter{.choice = choice, .tried = tried};
  {
    const Locked locked(lock_);
    // A newcomer stays behind the line, which serve_line passes along.
    UpstreamMember* const member = line_.empty() ? choose(choice, tried) : nullptr;
    if (member != nullptr) {
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
  std::expected<void, Error> waited;
  do {
    serve_line();
    // No lease ends and no server comes back at the moment from which a skipped one may be asked again.
    waited = waiter.handed.wait(std::min(deadline, next_return(waiter.tried)));
    if (waited) return waiter.member;
  } while (waited.error().is_late() && !deadline.passed());
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

// next_return is when the first server that is skipped now, of those not tried, may be asked again.
Deadline UpstreamGroup::next_return(std::uint32_t tried) const noexcept {
  Deadline next;
  const Locked locked(lock_);
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const UpstreamMember& each = members_[i];
    const bool is_skipped = (tried >> i & 1) == 0 && !each.failing && !each.out_until.passed();
    if (is_skipped) next = std::min(next, each.out_until);
  }
  return next;
}

void UpstreamGroup::end(UpstreamMember& member) noexcept {
  {
    const Locked locked(lock_);
    --member.in_use;
    if (line_.empty()) return;
  }
  serve_line();
}

// serve_line hands leases to those that have waited for longest, as many as there is room for.
void UpstreamGroup::serve_line() noexcept {
  coir::detail::IntrusiveList<RoomWaiter> served;
  {
    const Locked locked(lock_);
    for (RoomWaiter *waiter = line_.front(), *next; waiter != nullptr; waiter = next) {
      next = waiter->next;
      UpstreamMember* const member = choose(waiter->choice, waiter->tried);
      // If one that takes any server finds no room, those behind it find none.
      if (member == nullptr && waiter->tried == 0) break;
      if (member == nullptr) continue;
      ++member->in_use;
      ++member->tally.requests;
      waiter->member = member;
      line_.remove(*waiter);
      served.push_back(*waiter);
    }
  }
  // Once it is told, a waiter is gone.
  while (RoomWaiter* const waiter = served.front()) {
    served.remove(*waiter);
    waiter->handed.set();
  }
}

}  // namespace coir::http
