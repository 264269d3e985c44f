// How the names of a group's servers are looked up. Declared in proxy/upstreams/upstream.h.
#include <coir/fiber.h>
#include <string.h>

#include <algorithm>
#include <utility>

#include "proxy/upstreams/upstream.h"

namespace coir::http {
namespace {

using namespace std::chrono_literals;

// A name is looked up once a second at most, and where that failed again after this time, while addresses are known.
constexpr std::chrono::nanoseconds kLeastBetweenLookups = 1s, kAfterFailedLookup = 5s;
constexpr std::size_t kAskerStack = 16 * 1024;

bool same(const Addresses& one, const Addresses& other) noexcept {
  if (one.size() != other.size()) return false;
  for (std::size_t i = 0; i < one.size(); ++i) {
    const Address left = one[i];
    bool found = false;
    for (std::size_t k = 0; k < other.size() && !found; ++k) {
      const Address right = other[k];
      found = left.length() == right.length() && memcmp(left.get(), right.get(), left.length()) == 0;
    }
    if (!found) return false;
  }
  return true;
}

}  // namespace

// look_up asks for a member's name where its answer's time is over. One fiber does. While nothing is known the others wait
// for it; later they go on by what is known, and the asker is a fiber of its own: a name server that is silent or slow costs
// no exchange any time.
std::expected<void, Error> UpstreamGroup::look_up(UpstreamMember& member, Deadline deadline) noexcept {
  if (!member.named.done()) return ask_first(member, deadline);
  {
    const Locked locked(lock_);
    if (!member.look_again.passed() || member.looking) return {};
    member.looking = true;
  }
  if (current().id() == 0) return ask_name(member, deadline);
  ask_beside(member);
  return {};
}

// ask_first asks, or waits until the exchange that asks is done. The asker writes `known` under lock_ before its call ends,
// which wakes all that wait; they read it under lock_. If the asker fails it writes why, and the call wakes the next in
// line alone: it returns that error while it is kept, and so do all behind it. If the asker was cancelled nothing is kept,
// and the next in line asks until its own deadline. A fiber that is cancelled, or late, leaves the line.
std::expected<void, Error> UpstreamGroup::ask_first(UpstreamMember& member, Deadline deadline) noexcept {
  const auto ask = [&]() -> std::expected<void, Error> {
    {
      const Locked locked(lock_);
      // The asker's deadline may have been shorter than this one.
      const bool has_time = member.unknown_for.is_late() && deadline > Deadline::after(kLeastBetweenLookups);
      if (!member.look_again.passed() && !has_time) return std::unexpected(member.unknown_for);
    }
    return ask_name(member, deadline);
  };
  return member.named.call(ask, deadline);
}

void UpstreamGroup::ask_beside(UpstreamMember& member) noexcept {
  asking_.fetch_add(1, std::memory_order_relaxed);
  Fiber asker = spawn({.name = "upstream name", .stack = kAskerStack, .detached = true}, [this, &member] {
    static_cast<void>(ask_name(member, Deadline::never()));
    // release pairs with the acquire in the destructor.
    asking_.fetch_sub(1, std::memory_order_release);
  });
  const bool started = asker.started();
  if (!started) asking_.fetch_sub(1, std::memory_order_relaxed);
  const Locked locked(lock_);
  if (!started) {
    member.looking = false;
    member.look_again = Deadline::after(kLeastBetweenLookups);
  }
  std::swap(member.asker, asker);
}

std::expected<void, Error> UpstreamGroup::ask_name(UpstreamMember& member, Deadline deadline) noexcept {
  const Deadline fair = Deadline::after(kLeastBetweenLookups);
  const auto found = resolve(member.host, member.port, deadline);
  bool changed = false;
  {
    const Locked locked(lock_);
    member.looking = false;
    if (found) {
      changed = !same(*found, member.known);
      member.known = *found;
      member.look_again = std::max(found->valid_until(), Deadline::after(kLeastBetweenLookups));
    } else if (member.known.size() != 0) {
      member.look_again = Deadline::after(kAfterFailedLookup);
    } else {
      // An error of this side, or a deadline that left no time for an answer, says nothing of the name.
      const Error error = found.error();
      const bool is_own = error.ends_waits() || error == ErrorCode::no_memory || error == ErrorCode::limit ||
                          (error.is_late() && !fair.passed());
      if (!is_own) {
        member.unknown_for = error;
        member.look_again = Deadline::after(kLeastBetweenLookups);
      }
      return std::unexpected(error);
    }
  }
  if (changed) member.close_resting(SIZE_MAX, true);
  return {};
}

}  // namespace coir::http
