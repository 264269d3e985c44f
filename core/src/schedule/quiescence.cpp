#include <sys/stat.h>

#include <coir/config.h>

#include <algorithm>

#include "base/thread.h"
#include "schedule/scheduler.h"
#include "schedule/worker.h"

namespace coir {

namespace {

// threads_of_process counts the folder's links beyond the usual two, one for each thread; 0 where /proc does not tell.
unsigned threads_of_process() noexcept {
  struct stat tasks{};
  return stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink > 2 ? static_cast<unsigned>(tasks.st_nlink - 2) : 0;
}

// An emulator has threads of its own before the program's first instruction.
const unsigned g_emulators_threads = std::max(threads_of_process(), 1u) - 1;

}  // namespace

// is_quiescent runs when no worker has anything to do. Either the run is over, or it waits for the outside world, or it
// is deadlocked. True: the worker may sleep. False: it looks for work again first.
//
// Invariant: the conclusion holds because no fiber ran and none became runnable while the sums were read. At the first
// look every idle bit is set and every queue is empty. A worker that leaves idleness clears its bit, then counts its
// withdrawal, and only then takes work or hands out events; so the second look sees it, even when it is idle again. A
// fiber from outside counts as alive once it stands in a queue, where the looks find it.
bool Scheduler::is_quiescent() noexcept {
  // acquire pairs with the release below: whoever sees kReported finds the cancelled fibers in their queues.
  const DeadlockState state = deadlock_.load(std::memory_order_acquire);
  if (state == DeadlockState::reporting) return true;  // the reporting worker looks again afterwards
  const std::uint64_t brought = door::seen();
  const std::uint64_t withdrawals = withdrawals_.load(std::memory_order_seq_cst);
  if (kManyWorkers && (!all_idle(idle_.load(std::memory_order_seq_cst)) || any_work())) return true;
  const bool stuck = alive() != 0;
  // A claim from outside matters only to live fibers. After a shutdown the run ends with its last fiber, even while
  // resting waits are armed.
  if (stuck && !isolated_ && outside_claims() != 0) return true;
  if ((stuck || !cancelling()) && waits_outside() != 0) return true;
  // Test this before the second look, which finds the fiber that the last thread brought before it ended.
  const bool awaits_threads = stuck && state == DeadlockState::none && waits_for_threads();
  awaits_threads_.store(awaits_threads, std::memory_order_relaxed);
  if (awaits_threads) return true;
  if (kManyWorkers && (any_work() || !all_idle(idle_.load(std::memory_order_seq_cst)) ||
                       withdrawals_.load(std::memory_order_seq_cst) != withdrawals)) {
    return true;  // the sums mix two moments; the worker that goes idle last looks anew
  }
  if (stuck && state == DeadlockState::none) {
    DeadlockState none = DeadlockState::none;
    if (!deadlock_.compare_exchange_strong(none, DeadlockState::reporting, std::memory_order_relaxed)) return true;
    report_deadlock(*this);
    cancel_all();
    deadlock_.store(DeadlockState::reported, std::memory_order_release);
    return false;
  }
  // From now on a newcomer finds no run. A visitor that brought a fiber has counted it, or is about to notify us.
  if (!isolated_ && !door::close_unless_brought(brought)) return true;
  stopping_.store(true, std::memory_order_release);
  if (kManyWorkers) wake_all();
  return false;
}

std::int64_t Scheduler::alive() const noexcept {
  // acquire: a fiber that counts is seen in its queue.
  auto sum = static_cast<std::int64_t>(outside_spawned.load(std::memory_order_acquire));
  for (unsigned i = 0; i < worker_count(); ++i) {
    sum += static_cast<std::int64_t>(workers_[i]->counters.spawned.load(std::memory_order_relaxed));
    sum -= static_cast<std::int64_t>(workers_[i]->counters.ended.load(std::memory_order_relaxed));
  }
  return sum;
}

void Scheduler::count_resting(std::int64_t more) noexcept {
  if (Worker* const worker = this_worker(); worker != nullptr) return bump(worker->counters.fd_waits, more);
  outside_waits.fetch_add(more, std::memory_order_relaxed);
  if (more > 0) return;
  // A run without fibers ends with its last resting wait, and its workers may sleep. The caller may hold a spinlock: it
  // wakes one of them only then. Pairs with the idle bit that a worker sets before it looks whether the run is over.
  full_fence();
  if (alive() == 0) wake_if_idle();
}

std::int64_t Scheduler::waits_outside() const noexcept {
  std::int64_t sum = outside_waits.load(std::memory_order_acquire);
  for (unsigned i = 0; i < worker_count(); ++i) {
    sum += workers_[i]->counters.fd_waits.load(std::memory_order_relaxed);
    sum += workers_[i]->wheel_.armed();
  }
  return sum;
}

// waits_for_threads tells whether this process has a plain thread, which may wake any parked fiber: by what the fiber
// waits for, or by cancelling it. Without /proc nobody knows: then, and under the thread sanitizer, which starts threads
// that nobody can tell from the program's, only fibers that wait for what threads bring count.
bool Scheduler::waits_for_threads() const noexcept {
  if (isolated_) return false;
  if (const unsigned all = threads_of_process(); all != 0) {
    if (all <= worker_count() + unseen_threads.load(std::memory_order_relaxed) + g_emulators_threads) return false;
    if constexpr (!COIR_TSAN) return true;
  }
  bool found = false;
  stacks.for_each([&found](const FiberControl& fiber) {
    found = found || fiber.wait_kind.load(std::memory_order_relaxed) >= WaitKind::mutex;
  });
  return found;
}

}  // namespace coir
