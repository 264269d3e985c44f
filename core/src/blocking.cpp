#include <coir/blocking.h>

#include "blocking_pool.h"
#include "park.h"

namespace coir::detail {

bool runs_in_place() noexcept {
  return this_worker() == nullptr;
}

std::expected<void, Error> run_owned(BlockingCall& call, Deadline deadline) noexcept {
  FiberControl* const self = running_fiber();
  if (self == nullptr) return std::unexpected(Error{ErrorCode::unsupported});
  if (is_cancelled(self)) return std::unexpected(error_of(WakeReason::cancelled));
  arm(self);
  if (auto entered = g_blocking_pool.enter(call, self); !entered) {
    disarm(self);
    return entered;
  }
  const WakeReason reason = park(self, WaitKind::blocking, 0, deadline);
  g_blocking_pool.lock();
  const bool done = g_blocking_pool.settle(call);
  g_blocking_pool.unlock();
  g_blocking_pool.leave(self);
  if (!done) return std::unexpected(error_of(reason));
  return {};
}

std::expected<void, Error> run_borrowed(BlockingCall& call, BlockingStop& stop, Deadline deadline,
                                        bool shielded) noexcept {
  const Shielded whole = shielded ? Shielded::yes : Shielded::no;
  FiberControl* const self = running_fiber();
  if (self == nullptr) return std::unexpected(Error{ErrorCode::unsupported});
  if (!shielded && is_cancelled(self)) return std::unexpected(error_of(WakeReason::cancelled));
  arm(self, whole);
  if (auto entered = g_blocking_pool.enter(call, self); !entered) {
    disarm(self);
    return entered;
  }
  const WakeReason reason = park(self, WaitKind::blocking, 0, shielded ? Deadline::never() : deadline, whole);
  const Error error = error_of(reason);
  g_blocking_pool.lock();
  if (call.state == BlockingCall::State::running) {
    // f touches what is the caller's: nothing ends this wait but f's end.
    stop.ask(error);
    arm(self, Shielded::yes);
    g_blocking_pool.unlock();
    park(self, WaitKind::blocking, 0, Deadline::never(), Shielded::yes);
    g_blocking_pool.lock();  // the thread that woke it is through with the call
  }
  const bool done = g_blocking_pool.settle(call);
  g_blocking_pool.unlock();
  g_blocking_pool.leave(self);
  if (!done) return std::unexpected(error);
  return {};
}

}  // namespace coir::detail
