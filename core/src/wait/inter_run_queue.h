#pragma once

#include <pthread.h>

#include <cstdint>
#include <expected>

#include <coir/atomic.h>
#include <coir/config.h>
#include <coir/deadline.h>
#include <coir/detail/wait_list.h>
#include <coir/error.h>

#include "fiber/control.h"
#include "wait/wait_round.h"

namespace coir::detail {

// InterRunLock guards what several runs share; in single-worker builds, where a Spinlock is empty, also what plain
// threads share. It is held for a few instructions and one message; nobody parks under it. In single-worker builds all
// InterRunLocks are one, which also guards the list of fibers that the worker has to wake.
class InterRunLock {
 public:
  void lock() noexcept { pthread_mutex_lock(&mutex()); }
  void unlock() noexcept { pthread_mutex_unlock(&mutex()); }

 private:
#if COIR_SINGLE_WORKER
  static pthread_mutex_t& mutex() noexcept;
#else
  pthread_mutex_t& mutex() noexcept { return mutex_; }
  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
#endif
};

// InterRunGuard holds the lock for the length of a scope; a wait inside releases it meanwhile.
class [[nodiscard]] InterRunGuard {
 public:
  explicit InterRunGuard(InterRunLock& lock) noexcept : lock_(lock) { lock_.lock(); }
  ~InterRunGuard() { lock_.unlock(); }
  InterRunGuard(const InterRunGuard&) = delete;
  InterRunGuard& operator=(const InterRunGuard&) = delete;

 private:
  InterRunLock& lock_;
};

// InterRunQueue is a line of fibers of any run, and of plain threads, that wait for a change by another run. Each waits
// in a loop under the lock: test the condition, else wait, and test again.
//
// Invariant: a thread that changes the condition calls wake_one or wake_all under the same lock, so that no change
// falls between a test and the wait. A fiber is claimed under the lock, which it takes to leave: the claim meets this
// wait or none. The wait counts as one on the outside world, so that the fiber's run lives until the wake and sees no
// deadlock.
//
// The line is a WaitList. The wait is no WaitRound, which knows one run and a Spinlock: a claimed fiber is woken by the
// way between runs, and in single-worker builds by its own worker, so that nothing is handed over and each looks again.
class InterRunQueue {
 public:
  // wait returns when the condition may have changed, with the lock held as before.
  // Errors: timed_out, cancelled (neither if shielded), unsupported (on a worker's own stack).
  std::expected<void, Error> wait(InterRunLock& lock, WaitKind kind, Deadline deadline,
                                  Shielded shielded = Shielded::no) noexcept;

  // wake_one wakes the first in line, and one of the threads that stand in no line; wake_all wakes everybody. Under the
  // lock.
  void wake_one() noexcept;
  void wake_all() noexcept;

  // answer is called by the CrossThreadWakeup on the only worker: it wakes the fibers that threads have listed.
  static void answer() noexcept;

 private:
  struct Place;
  std::expected<void, Error> wait_as_thread(InterRunLock& lock, Deadline deadline, Shielded shielded) noexcept;
  bool wake_first() noexcept;

  WaitList line_;  // of fibers; with many workers of threads, too
  // In single-worker builds threads may touch neither fibers nor scopes, and stand in no line.
  SharedAtomic<std::uint32_t> calls_{0};  // what they sleep on; changed under the lock
  std::uint32_t threads_ = 0;
};

}  // namespace coir::detail
