#include "wait/inter_run_queue.h"

#include <coir/config.h>
#include <coir/port/futex.h>

#include "wait/cross_thread_wakeup.h"
#include "wait/park.h"

namespace coir::detail {

// Place is a place in a line, or, in single-worker builds, a fiber's place in the list of fibers that the worker wakes.
struct InterRunQueue::Place : WaitNode {
  Waiter* waiter = nullptr;
  FiberControl* fiber = nullptr;  // null: a thread
  WaitList* in = nullptr;
};

namespace {

#if COIR_SINGLE_WORKER
constinit pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
#endif

// The fibers that threads have listed in single-worker builds, until the worker wakes them.
constinit WaitList g_called;
constinit CrossThreadWakeup g_wakeup{&InterRunQueue::answer};

bool call(Waiter& waiter, FiberControl* fiber) noexcept {
  if (fiber == nullptr) return waiter.claim_and_wake(WakeReason::ready);
  const Waiter::Claim won = fiber->claim(WakeReason::ready);
  if (won == Waiter::Claim::parked) wake_elsewhere(*fiber);
  return won != Waiter::Claim::lost;
}

}  // namespace

#if COIR_SINGLE_WORKER
pthread_mutex_t& InterRunLock::mutex() noexcept {
  return g_lock;
}
#endif

std::expected<void, Error> InterRunQueue::wait(InterRunLock& lock, WaitKind kind, Deadline deadline,
                                               Shielded shielded) noexcept {
  FiberControl* const self = running_fiber();
  if (self == nullptr) return wait_as_thread(lock, deadline, shielded);
  if (deadline.ns() <= 0) return std::unexpected(Error{ErrorCode::timed_out});
  if (shielded == Shielded::no && is_cancelled(self)) return std::unexpected(error_of(WakeReason::cancelled));
  arm(self, shielded);
  g_wakeup.enter(self);
  Place place;
  place.waiter = self;
  place.fiber = self;
  place.in = &line_;
  line_.push(place);
  lock.unlock();
  const WakeReason reason = park(self, kind, 0, deadline, shielded);
  lock.lock();
  if (place.queued) place.in->remove(place);
  // It was called but has not heard it: the call is for the next.
  if (!kManyWorkers && reason != WakeReason::ready && place.in != &line_) wake_first();
  g_wakeup.leave(self);
  if (reason != WakeReason::ready) return std::unexpected(error_of(reason));
  return {};
}

std::expected<void, Error> InterRunQueue::wait_as_thread(InterRunLock& lock, Deadline deadline,
                                                         Shielded shielded) noexcept {
  if (this_worker() != nullptr) return std::unexpected(Error{ErrorCode::unsupported});
  if (deadline.ns() <= 0) return std::unexpected(Error{ErrorCode::timed_out});
  if constexpr (kManyWorkers) {
    ThreadWaiter thread;
    thread.arm();
    Place place;
    place.waiter = &thread;
    place.in = &line_;
    line_.push(place);
    lock.unlock();
    const WakeReason reason = thread.park(deadline, shielded);
    lock.lock();
    if (place.queued) line_.remove(place);
    if (reason != WakeReason::ready) return std::unexpected(error_of(reason));
    return {};
  }
  if (shielded == Shielded::no && !begin_scoped_wait(deadline)) {
    return std::unexpected(scoped_error(ErrorCode::cancelled));
  }
  std::int64_t left = -1;
  if (!deadline.is_never()) {
    left = deadline.ns() - monotonic_ns();
    if (left <= 0) return std::unexpected(scoped_error(ErrorCode::timed_out));
  }
  const std::uint32_t seen = calls_.load(std::memory_order_relaxed);
  ++threads_;
  lock.unlock();
  port::futex_wait(calls_, seen, left);
  lock.lock();
  --threads_;
  return {};
}

// wake_first wakes the first that still waits; false when there is none.
bool InterRunQueue::wake_first() noexcept {
  while (WaitNode* const first = line_.front()) {
    auto& place = static_cast<Place&>(*first);
    line_.remove(place);
    if (kManyWorkers || this_worker() != nullptr) {
      if (call(*place.waiter, place.fiber)) return true;
    } else {
      place.in = &g_called;
      g_called.push(place);
      g_wakeup.ring();
      return true;
    }
  }
  return false;
}

void InterRunQueue::wake_one() noexcept {
  wake_first();
  if (threads_ == 0) return;
  calls_.fetch_add(1, std::memory_order_relaxed);
  port::futex_wake(calls_);
}

void InterRunQueue::wake_all() noexcept {
  while (wake_first()) {
  }
  if (threads_ == 0) return;
  calls_.fetch_add(1, std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < threads_; ++i) port::futex_wake(calls_);
}

void InterRunQueue::answer() noexcept {
  InterRunLock lock;
  lock.lock();
  while (WaitNode* const first = g_called.front()) {
    auto& place = static_cast<Place&>(*first);
    g_called.remove(place);
    call(*place.waiter, place.fiber);
  }
  lock.unlock();
}

}  // namespace coir::detail
