#include <coir/blocking.h>

#include <coir/pressure.h>
#include <coir/stack_size.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>

#include <coir/port/futex.h>

#include "bell.h"
#include "board.h"
#include "park.h"

namespace coir {
namespace detail {

namespace {

constexpr std::int64_t kIdleNs = 1'000'000'000;
constexpr std::size_t kThreadBytes = kBlockingStackBytes * kStackInflation;

// CallQueue is a FIFO of calls, out of whose middle one may leave.
class CallQueue {
 public:
  BlockingCall* front() const noexcept { return head_; }
  std::size_t size() const noexcept { return size_; }

  void push(BlockingCall& call) noexcept {
    call.next = nullptr;
    call.previous = tail_;
    (tail_ != nullptr ? tail_->next : head_) = &call;
    tail_ = &call;
    ++size_;
  }

  void remove(BlockingCall& call) noexcept {
    (call.previous != nullptr ? call.previous->next : head_) = call.next;
    (call.next != nullptr ? call.next->previous : tail_) = call.previous;
    --size_;
  }

 private:
  BlockingCall* head_ = nullptr;
  BlockingCall* tail_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace

// BlockingPool is the process's threads for blocking calls. One lock guards all of it and every call's fields; it is
// held for a few instructions, a move of the closure or the result, and the start of a thread. Nobody parks under it.
//
// Invariant: a call in the queue finds a thread. Whoever queues it sees an idle thread for each call in the queue, or
// starts one, or leaves it to threads that look into the queue before they go idle, all under the lock.
//
// A caller is claimed under the lock, which it takes to leave its wait: the claim meets this wait or none, and the run
// that the caller belongs to cannot end before the thread has woken it.
class BlockingPool {
 public:
  void lock() noexcept { pthread_mutex_lock(&mutex_); }
  void unlock() noexcept { pthread_mutex_unlock(&mutex_); }

  std::expected<void, Error> enter(BlockingCall& call, FiberControl* self) noexcept;
  void finish(BlockingSeat& seat) noexcept;

  // settle ends a caller's interest in a call, under the lock. True: it is done, and the thread is through with it.
  bool settle(BlockingCall& call) noexcept;
  // leave follows each enter that succeeded, once the caller waits no more. Not under the lock.
  void leave(FiberControl* self) noexcept { bell_.leave(self); }

 private:
  static void* thread_main(void*) noexcept;
  static void answer() noexcept;
  static std::size_t refund_retired(void* pool, std::size_t) noexcept;
  void serve() noexcept;
  bool wants_thread(std::size_t queued) const noexcept { return queued > idle_ && threads_ < board::kBlockingThreads; }
  bool start_thread() noexcept;

  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  CallQueue queue_;
  CallQueue listed_;  // single-worker builds: their callers are to be woken by answer
  std::size_t threads_ = 0;
  std::size_t idle_ = 0;
  SharedAtomic<std::uint32_t> arrivals_{0};  // what idle threads sleep on; changed under the lock

  // In single-worker builds the ledger belongs to the worker: what a thread leaves behind it refunds later.
  std::size_t retired_ = 0;
  bool relief_added_ = false;
  Relief relief_{PressureStep::trim, &refund_retired, this};
  Bell bell_{&answer};
};

namespace {
constinit BlockingPool g_pool;
}  // namespace

// enter queues a call for the fiber that makes it, which is armed.
std::expected<void, Error> BlockingPool::enter(BlockingCall& call, FiberControl* self) noexcept {
  if (auto ready = bell_.enter(self); !ready) return ready;
  if constexpr (!kManyWorkers) {
    refund_retired(this, 0);
    if (!relief_added_) Pressure::add(relief_);
    relief_added_ = true;
  }
  lock();
  bool charged = false;
  if (wants_thread(queue_.size() + 1)) {
    // Making room calls reliefs, ours among them: not under the lock.
    unlock();
    charged = Pressure::charge(account::stacks, kThreadBytes);
    lock();
  }
  Error refused{ErrorCode::limit};
  if (charged && wants_thread(queue_.size() + 1)) {
    charged = false;
    if (!start_thread()) {
      charged = true;
      refused = {ErrorCode::no_memory};
    }
  }
  const bool served = threads_ != 0;
  if (served) {
    call.waiter = self;
    call.state = BlockingCall::State::queued;
    queue_.push(call);
    arrivals_.fetch_add(1, std::memory_order_relaxed);
  }
  unlock();
  if (charged) account::stacks.refund(kThreadBytes);
  if (!served) {
    bell_.leave(self);
    return std::unexpected(refused);
  }
  port::futex_wake(arrivals_);
  return {};
}

bool BlockingPool::settle(BlockingCall& call) noexcept {
  switch (call.state) {
    case BlockingCall::State::queued:
      queue_.remove(call);
      return false;
    case BlockingCall::State::running:
      call.seat->call_ = nullptr;
      return false;
    case BlockingCall::State::listed:
      listed_.remove(call);
      return true;
    case BlockingCall::State::done:
      return true;
  }
  return true;
}

// finish wakes the caller if it still waits, and opens the lock.
void BlockingPool::finish(BlockingSeat& seat) noexcept {
  if (BlockingCall* const call = std::exchange(seat.call_, nullptr); call != nullptr) {
    if constexpr (kManyWorkers) {
      call->state = BlockingCall::State::done;
      call->waiter->claim_and_wake(WakeReason::ready);
    } else {
      call->state = BlockingCall::State::listed;
      listed_.push(*call);
      bell_.ring();
    }
  }
  unlock();
}

// answer runs on the only worker after a ring.
void BlockingPool::answer() noexcept {
  g_pool.lock();
  while (BlockingCall* const call = g_pool.listed_.front()) {
    g_pool.listed_.remove(*call);
    call->state = BlockingCall::State::done;
    call->waiter->claim_and_wake(WakeReason::ready);
  }
  g_pool.unlock();
}

bool BlockingPool::start_thread() noexcept {
  // Signals are for the threads that have room for their handlers.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kThreadBytes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  const bool started = pthread_create(&thread, &attributes, &thread_main, nullptr) == 0;
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (started) ++threads_;
  return started;
}

void* BlockingPool::thread_main(void*) noexcept {
  g_pool.serve();
  return nullptr;
}

void BlockingPool::serve() noexcept {
  BlockingSeat seat;
  lock();
  std::int64_t until = monotonic_ns() + kIdleNs;
  for (;;) {
    if (BlockingCall* const call = queue_.front(); call != nullptr) {
      queue_.remove(*call);
      call->state = BlockingCall::State::running;
      call->seat = &seat;
      seat.call_ = call;
      call->run(*call, seat);  // opens the lock
      lock();
      until = monotonic_ns() + kIdleNs;
      continue;
    }
    const std::int64_t left = until - monotonic_ns();
    if (left <= 0) break;
    const std::uint32_t seen = arrivals_.load(std::memory_order_relaxed);
    ++idle_;
    unlock();
    port::futex_wait(arrivals_, seen, left);
    lock();
    --idle_;
  }
  --threads_;
  if constexpr (!kManyWorkers) ++retired_;
  unlock();
  if constexpr (kManyWorkers) account::stacks.refund(kThreadBytes);
}

// refund_retired runs on the only worker.
std::size_t BlockingPool::refund_retired(void* pool, std::size_t) noexcept {
  auto& self = *static_cast<BlockingPool*>(pool);
  self.lock();
  const std::size_t bytes = std::exchange(self.retired_, 0) * kThreadBytes;
  self.unlock();
  if (bytes != 0) account::stacks.refund(bytes);
  return bytes;
}

void BlockingSeat::begin() noexcept {
  g_pool.unlock();
}

bool BlockingSeat::end() noexcept {
  g_pool.lock();
  return call_ != nullptr;
}

void BlockingSeat::finish() noexcept {
  g_pool.finish(*this);
}

bool runs_in_place() noexcept {
  return this_worker() == nullptr;
}

std::expected<void, Error> run_owned(BlockingCall& call, Deadline deadline) noexcept {
  FiberControl* const self = running_fiber();
  if (self == nullptr) return std::unexpected(Error{ErrorCode::unsupported});
  if (is_cancelled(self)) return std::unexpected(Error{ErrorCode::cancelled});
  arm(self);
  if (auto entered = g_pool.enter(call, self); !entered) {
    disarm(self);
    return entered;
  }
  const WakeReason reason = park(self, WaitKind::blocking, 0, deadline);
  g_pool.lock();
  const bool done = g_pool.settle(call);
  g_pool.unlock();
  g_pool.leave(self);
  if (!done) return std::unexpected(error_of(reason));
  return {};
}

std::expected<void, Error> run_borrowed(BlockingCall& call, BlockingStop& stop, Deadline deadline,
                                        bool shielded) noexcept {
  FiberControl* const self = running_fiber();
  if (self == nullptr) return std::unexpected(Error{ErrorCode::unsupported});
  if (!shielded && is_cancelled(self)) return std::unexpected(Error{ErrorCode::cancelled});
  if (shielded) {
    arm_shielded(self);
  } else {
    arm(self);
  }
  if (auto entered = g_pool.enter(call, self); !entered) {
    disarm(self);
    return entered;
  }
  const WakeReason reason = park(self, WaitKind::blocking, 0, shielded ? Deadline::never() : deadline);
  g_pool.lock();
  if (call.state == BlockingCall::State::running) {
    if (reason == WakeReason::cancelled) stop.ask();
    arm_shielded(self);
    g_pool.unlock();
    park(self, WaitKind::blocking, 0, Deadline::never());
    g_pool.lock();  // the thread that woke it is through with the call
  }
  const bool done = g_pool.settle(call);
  g_pool.unlock();
  g_pool.leave(self);
  if (!done) return std::unexpected(error_of(reason));
  return {};
}

}  // namespace detail
}  // namespace coir
