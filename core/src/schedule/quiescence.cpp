#include <sys/stat.h>

#include <coir/config.h>

#include "base/thread.h"
#include "schedule/scheduler.h"
#include "schedule/worker.h"

namespace coir {

namespace {

// threads_of_process is one link of the folder for each thread, beside the usual two; 0 where /proc does not tell.
unsigned threads_of_process() noexcept {
  struct stat tasks{};
  return stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink > 2 ? static_cast<unsigned>(tasks.st_nlink - 2) : 0;
}

// An emulator has threads of its own, before the program's first instruction.
const unsigned g_emulators_threads = kManyWorkers ? threads_of_process() - 1 : 0;

}  // namespace

// is_quiescent runs when no worker has anything to do: everything is over, or waits for the outside world, or is stuck for
// good. False: look for work again before sleeping.
//
// Invariant: what it concludes holds because no fiber ran and none was made runnable while the sums were read. Every
// idle bit was set and every queue empty at the first look; a worker clears its bit, then counts its withdrawal, and
// only then takes work up or hands events out, so that one which did so meanwhile is seen at the second look, even when
// it is idle again by then. A fiber from outside counts as alive once it stands in a queue, and is seen there.
bool Scheduler::is_quiescent() noexcept {
  // acquire pairs with the release below: whoever sees kReported finds the cancelled fibers in their queues.
  const DeadlockState state = deadlock_.load(std::memory_order_acquire);
  if (state == DeadlockState::reporting) return true;  // who reports looks again afterwards
  const std::uint64_t brought = door::seen();
  const std::uint64_t withdrawals = withdrawals_.load(std::memory_order_seq_cst);
  if (kManyWorkers && (!all_idle(idle_.load(std::memory_order_seq_cst)) || any_work())) return true;
  const bool stuck = alive() != 0;
  // A claim from outside concerns who lives. After a shutdown the run ends with its last fiber, whatever records sleep
  // on.
  if (stuck && !isolated_ && outside_claims() != 0) return true;
  if ((stuck || !cancelling()) && waits_outside() != 0) return true;
  // Before the second look, which finds what the last thread brought before it ended.
  const bool awaits_threads = stuck && state == DeadlockState::none && waits_for_threads();
  awaits_threads_.store(awaits_threads, std::memory_order_relaxed);
  if (awaits_threads) return true;
  if (kManyWorkers && (any_work() || !all_idle(idle_.load(std::memory_order_seq_cst)) ||
                       withdrawals_.load(std::memory_order_seq_cst) != withdrawals)) {
    return true;  // the sums mix two moments; who goes idle last looks anew
  }
  if (stuck && state == DeadlockState::none) {
    DeadlockState none = DeadlockState::none;
    if (!deadlock_.compare_exchange_strong(none, DeadlockState::reporting, std::memory_order_relaxed)) return true;
    report_deadlock(*this);
    cancel_all();
    deadlock_.store(DeadlockState::reported, std::memory_order_release);
    return false;
  }
  // Who comes from now on finds no run; one that brought a fiber has counted it, or is about to have us look again.
  if (!isolated_ && !door::close_unless_brought(brought)) return true;
  stopping_.store(true, std::memory_order_release);
  if (kManyWorkers) wake_all();
  return false;
}

std::int64_t Scheduler::alive() const noexcept {
  // acquire: a fiber that counts is seen in its queue.
  auto sum = static_cast<std::int64_t>(outside_spawned.load(std::memory_order_acquire));
  for (unsigned i = 0; i < worker_count_; ++i) {
    sum += static_cast<std::int64_t>(workers_[i]->counters.spawned.load(std::memory_order_relaxed));
    sum -= static_cast<std::int64_t>(workers_[i]->counters.ended.load(std::memory_order_relaxed));
  }
  return sum;
}

std::int64_t Scheduler::waits_outside() const noexcept {
  std::int64_t sum = outside_waits.load(std::memory_order_acquire);
  for (unsigned i = 0; i < worker_count_; ++i) {
    sum += workers_[i]->counters.fd_waits.load(std::memory_order_relaxed);
    sum += workers_[i]->wheel_.armed();
  }
  return sum;
}

// waits_for_threads tells whether there is a plain thread in this process. It may wake any of the parked fibers: those
// that wait for what threads bring, and every other by cancelling it. Under the thread sanitizer only the former count.
bool Scheduler::waits_for_threads() const noexcept {
  if (!kManyWorkers || isolated_) return false;
  const unsigned known = worker_count_ + unseen_threads.load(std::memory_order_relaxed) + g_emulators_threads;
  if (threads_of_process() <= known) return false;
  if constexpr (!COIR_TSAN) return true;  // that sanitizer starts threads which nobody can tell from the program's
  bool found = false;
  stacks.for_each([&found](const FiberControl& fiber) {
    found = found || fiber.wait_kind.load(std::memory_order_relaxed) >= WaitKind::mutex;
  });
  return found;
}

}  // namespace coir
