#include "wait/wait_several.h"

#include <coir/budget.h>
#include <coir/cancel_scope.h>
#include <sched.h>

#include "wait/park.h"
#include "wait/polling_thread.h"

namespace coir {

namespace {

std::expected<void, Error> wait_by_poll(std::span<const Awaited> several, Deadline deadline,
                                        Shielded shielded) noexcept {
  pollfd entries[kMostAwaited + 1];
  std::size_t count = 0;
  for (const Awaited& one : several) {
    if (one.fd >= 0) entries[count++] = {.fd = one.fd, .events = poll_events(one.direction), .revents = 0};
  }
  if (running_fiber() != nullptr) return poll_now({entries, count});
  return poll_on_thread({entries, count + 1}, deadline, shielded);
}

// park_at parks, and has reports name the first descriptor of those that are waited for.
WakeReason park_at(FiberControl* self, std::span<const Awaited> several, Deadline deadline,
                   Shielded shielded) noexcept {
  std::size_t at = 0;
  while (at + 1 < several.size() && several[at].fd < 0) ++at;
  return park(self, wait_kind(several[at].direction), several[at].fd, deadline, shielded);
}

}  // namespace

// The fiber is shown to each source. The first to claim it wakes it, and the fiber takes itself out of the others
// before it continues. An edge that finds the fiber claimed stays in its word for the next wait.
std::expected<void, Error> wait_several(std::span<const Awaited> several, Deadline deadline,
                                        Shielded shielded) noexcept {
  spend_budget();
  if (several.size() > kMostAwaited) return std::unexpected(Error{ErrorCode::invalid});
  FiberControl* const self = running_fiber();
  if (self == nullptr) {
    if (this_worker() != nullptr) return std::unexpected(Error{ErrorCode::unsupported});
    return wait_by_poll(several, deadline, shielded);
  }
  if (shielded == Shielded::no && is_cancelled(self)) return std::unexpected(error_of(WakeReason::cancelled));
  if (deadline.ns() <= 0) return wait_by_poll(several, deadline, shielded);
  Reactor& reactor = self->worker->scheduler().reactor;
  arm(self, shielded);
  bump(self->worker->counters.fd_waits);  // before it can be woken, as in wait
  detail::DescriptorNode nodes[kMostAwaited];
  std::expected<bool, Error> waits = true;
  std::size_t shown = 0;
  for (; shown < several.size() && waits && *waits; ++shown) {
    if (several[shown].fd < 0) continue;
    nodes[shown].waiter = self;
    waits = reactor.attach(several[shown].fd, several[shown].direction, nodes[shown]);
  }
  WakeReason reason = WakeReason::ready;
  const bool parks = waits && *waits;
  if (parks) {
    reason = park_at(self, several, deadline, shielded);
  } else {
    --shown;  // the last did not take it
  }
  for (std::size_t i = 0; i < shown; ++i) {
    if (several[i].fd >= 0) reactor.detach(several[i].fd, several[i].direction, nodes[i]);
  }
  if (!parks) disarm(self);
  bump(self->worker->counters.fd_waits, std::int64_t{-1});
  if (!waits) return std::unexpected(waits.error());
  if (reason != WakeReason::ready) return std::unexpected(error_of(reason));
  return {};
}

std::expected<void, Error> wait_several(std::span<const Awaited> several, Deadline deadline) noexcept {
  return wait_several(several, deadline, Shielded::no);
}

std::expected<void, Error> pause_between(Deadline deadline) noexcept {
  if (FiberControl* const self = running_fiber(); self != nullptr) {
    Worker::yield(self);
  } else {
    sched_yield();
  }
  if (auto going = check_cancelled(); !going) return going;
  if (deadline.passed()) return std::unexpected(Error{ErrorCode::timed_out});
  return {};
}

}  // namespace coir
