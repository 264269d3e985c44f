#pragma once

#include <coir/blocking.h>

#include <coir/detail/intrusive_list.h>
#include <coir/port/limits.h>
#include <coir/pressure.h>
#include <coir/stack_size.h>
#include <pthread.h>

#include "wait/cross_thread_wakeup.h"

namespace coir::detail {

inline constexpr std::size_t kBlockingThreadBytes = kBlockingStackBytes * kStackInflation;

// BlockingPool is the threads that run blocking calls: one pool for the process's run and its plain threads, and one
// for each isolated run, whose own thread starts them, so that they inherit its denials. One lock guards the pool and
// every call's fields. It is held for a few instructions, a move of the closure or the result, and the start of a
// thread. No caller parks while holding it.
//
// Invariant: a queued call finds a thread. The caller that queues it sees an idle thread for each queued call, or
// starts one, or leaves it to threads that look into the queue before they go idle, all under the lock. A thread that
// ends a call looks for the next of any kind.
//
// A caller is claimed under the lock, which it takes to leave its wait: the claim meets this wait or none, and the run
// that the caller belongs to cannot end before the thread has woken it.
class BlockingPool {
 public:
  void lock() noexcept { pthread_mutex_lock(&mutex_); }
  void unlock() noexcept { pthread_mutex_unlock(&mutex_); }

  // enter queues a call for `waiter`, which is armed: the fiber `self`, or, where that is null, a plain thread.
  std::expected<void, Error> enter(BlockingCall& call, Waiter* waiter, FiberControl* self) noexcept;
  void finish(BlockingSeat& seat) noexcept;

  // withdraw ends a caller's interest in a call, under the lock. True: the call is done, and no thread touches it.
  bool withdraw(BlockingCall& call) noexcept;
  // leave follows each successful enter, once the caller no longer waits. Not under the lock.
  void leave(FiberControl* self) noexcept {
    if (self != nullptr) wakeup_.leave(self);
  }

  // For stats and dumps: how many calls run, how many wait for a thread, and how many ever had to.
  struct Load {
    std::uint32_t running, waiting;
    std::uint64_t waited;
  };
  Load load() const noexcept {
    return {shown_running_.load(std::memory_order_relaxed), shown_waiting_.load(std::memory_order_relaxed),
            waited_.load(std::memory_order_relaxed)};
  }

  // make makes the pool of an isolated run, for its Scheduler::blocking; null: no memory. retire ends it after the run:
  // it is freed with its last thread, and an abandoned call runs to its end.
  static BlockingPool* make() noexcept;
  void retire() noexcept;

 private:
  static void* thread_main(void* pool) noexcept;
  static void answer() noexcept;
  static std::size_t refund_retired(void* pool, std::size_t) noexcept;
  void serve() noexcept;
  void show_load() noexcept;
  // next is the call that a thread runs next: the oldest, or, while as many run as the board has threads, the oldest of
  // a kind of which none runs. Null: every queued call waits for a running one to end.
  BlockingCall* next() const noexcept;
  // wants_thread tells whether a call of that kind, the last of `queued`, needs one more thread.
  bool wants_thread(std::size_t queued, BlockingKind kind) const noexcept {
    if (threads_ < port::limits().blocking_threads) return queued > idle_;
    return queued > idle_ && running_of_[static_cast<std::size_t>(kind)] == 0 &&
           threads_ < port::limits().blocking_threads + kBlockingKinds - 1;
  }
  bool start_thread() noexcept;
  void destroy() noexcept;

  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  CountedList<BlockingCall> queue_;
  CountedList<BlockingCall> listed_;  // single-worker builds: their callers are to be woken by answer
  std::size_t threads_ = 0;
  std::size_t idle_ = 0;
  std::size_t running_ = 0, running_of_[kBlockingKinds] = {};
  // Read without the lock, also from signal handlers.
  SharedAtomic<std::uint32_t> shown_running_{0}, shown_waiting_{0};
  SharedAtomic<std::uint64_t> waited_{0};
  bool closing_ = false;                     // no call comes any more
  SharedAtomic<std::uint32_t> arrivals_{0};  // what idle threads sleep on; changed under the lock

  // In single-worker builds the ledger belongs to the worker, which refunds an ended thread's charges later.
  std::size_t retired_ = 0;
  bool relief_added_ = false;
  Relief relief_{Pressure::caches, &refund_retired, this};
  CrossThreadWakeup wakeup_{&answer};
};

extern constinit BlockingPool g_blocking_pool;

}  // namespace coir::detail
