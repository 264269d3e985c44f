#include <coir/blocking.h>

#include <coir/budget.h>
#include <coir/port/seccomp.h>

#include "base/fallback.h"
#include "blocking/blocking_pool.h"
#include "memory/heap.h"
#include "wait/current_scope.h"
#include "wait/park.h"

namespace coir::detail {

namespace {

BlockingPool& pool_of(const FiberControl* fiber) noexcept {
  BlockingPool* const own = fiber == nullptr ? nullptr : fiber->worker->scheduler().blocking;
  return own == nullptr ? g_blocking_pool : *own;
}

}  // namespace

bool runs_in_place() noexcept {
  if (this_worker() != nullptr) return false;
  tell_fallback(Fallback::blocks_thread);
  return true;
}

bool may_run_elsewhere() noexcept {
  return this_worker() != nullptr || (kManyWorkers && !port::system_calls_denied());
}

std::expected<void, Error> run_owned(BlockingCall& call, Deadline deadline) noexcept {
  spend_budget();
  Caller caller;
  if (!caller.may_wait()) return std::unexpected(Error{ErrorCode::unsupported});
  if (caller.is_cancelled()) return std::unexpected(error_of(WakeReason::cancelled));
  FiberControl* const self = running_fiber();
  const ScopedWork work(self);
  BlockingPool& pool = pool_of(self);
  if (auto entered = pool.enter(call, caller.arm(), self); !entered) {
    if (self != nullptr) disarm(self);
    return entered;
  }
  const WakeReason reason = caller.park(WaitKind::blocking, 0, deadline);
  pool.lock();
  const bool done = pool.withdraw(call);
  pool.unlock();
  pool.leave(self);
  enter_heap();
  if (!done) return std::unexpected(error_of(reason));
  return {};
}

std::expected<void, Error> run_borrowed(BlockingCall& call, BlockingStop& stop, Deadline deadline,
                                        bool shielded) noexcept {
  spend_budget();
  const Shielded whole = shielded ? Shielded::yes : Shielded::no;
  FiberControl* const self = running_fiber();
  if (self == nullptr) return std::unexpected(Error{ErrorCode::unsupported});
  const ScopedWork work(self);
  BlockingPool& pool = pool_of(self);
  if (!shielded && is_cancelled(self)) return std::unexpected(error_of(WakeReason::cancelled));
  arm(self, whole);
  if (auto entered = pool.enter(call, self, self); !entered) {
    disarm(self);
    return entered;
  }
  const WakeReason reason = park(self, WaitKind::blocking, 0, shielded ? Deadline::never() : deadline, whole);
  const Error error = error_of(reason);
  pool.lock();
  if (call.state == BlockingCall::State::running) {
    // f touches the caller's memory: only the end of f ends this wait.
    stop.ask(error);
    arm(self, Shielded::yes);
    pool.unlock();
    park(self, WaitKind::blocking, 0, Deadline::never(), Shielded::yes);
    pool.lock();  // wait until the thread that woke us has left the call
  }
  const bool done = pool.withdraw(call);
  pool.unlock();
  pool.leave(self);
  enter_heap();
  if (!done) return std::unexpected(error);
  return {};
}

}  // namespace coir::detail
