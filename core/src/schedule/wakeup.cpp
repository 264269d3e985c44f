#include <coir/deadline.h>
#include <coir/port/futex.h>

#include <algorithm>
#include <bit>

#include "schedule/scheduler.h"
#include "schedule/worker.h"

// Waking a sleeping worker for work, for timers, and when nobody polls: "Idle workers" and "The poller" of scheduler.h
// describe the protocol.

namespace coir {

void Scheduler::notify() noexcept {
  // Only a plain thread can find the one worker idle; it comes through inject.
  if (kManyWorkers && worker_count() > 1) wake_if_idle();
}

void Scheduler::inject(FiberControl* fiber) noexcept {
  const Hold hold(*this);
  inbox.push(fiber);
  wake_if_idle();
}

void Scheduler::inject_new(FiberControl* fiber) noexcept {
  inbox.push_counted(fiber, outside_spawned);
  if (isolated_) return;  // its own thread, before it runs
  door::brought();
  wake_if_idle();
  door::leave();
}

bool Scheduler::wake_if_idle() noexcept {
  if constexpr (!kManyWorkers) return false;
  full_fence();  // the push, or the woken fiber's place, before the look at who sleeps
  if (idle_.load(std::memory_order_seq_cst) == 0) return false;
  wake_one();
  return true;
}

void Scheduler::hand_to(unsigned index, FiberControl* fiber) noexcept {
  workers_[index]->inbox_.push(fiber);
  full_fence();
  const std::uint64_t both = bit(index, false) | bit(index, true);
  std::uint64_t idle = idle_.load(std::memory_order_seq_cst);
  while ((idle & both) != 0) {
    if (idle_.compare_exchange_weak(idle, idle & ~both, std::memory_order_seq_cst)) {
      searching_.fetch_add(1, std::memory_order_seq_cst);
      wake_worker(index, (idle & bit(index, true)) != 0);
      return;
    }
  }
}

// wake_one wakes a sleeping worker, unless one is searching already: the searcher finds the work, or looks once more
// after it has set its bit. A caller that finds nobody asleep has counted as a searcher meanwhile, and others may have
// woken nobody because of it: it looks again after it no longer counts.
void Scheduler::wake_one() noexcept {
  do {
    std::uint32_t none = 0;
    if (!searching_.compare_exchange_strong(none, 1, std::memory_order_seq_cst)) return;
    std::uint64_t idle = idle_.load(std::memory_order_seq_cst);
    while (idle != 0) {
      const auto lowest = static_cast<unsigned>(std::countr_zero(idle));
      if (idle_.compare_exchange_weak(idle, idle & (idle - 1), std::memory_order_seq_cst))
        return wake_worker(lowest % 32, lowest >= 32);
    }
    searching_.fetch_sub(1, std::memory_order_seq_cst);
  } while (idle_.load(std::memory_order_seq_cst) != 0);
}

// release_poller is called by a worker that has cleared polling_ and is about to run a fiber, for any length of time:
// it wakes a sleeping worker, which then polls. A worker that is searching already will poll, or wakes the next when it
// finds work.
void Scheduler::release_poller() noexcept {
  if constexpr (!kManyWorkers) return;
  constexpr std::uint64_t kOnFutex = (std::uint64_t{1} << 32) - 1;
  // seq_cst pairs with the looks at polling_ in idle and doze.
  if ((idle_.load(std::memory_order_seq_cst) & kOnFutex) == 0 || polling_.load(std::memory_order_seq_cst)) return;
  const std::int64_t looks_at = guarded_until_ns_.load(std::memory_order_seq_cst);
  if (looks_at == 0 || looks_at > monotonic_ns() + Worker::kGuardNs) wake_one();
}

// fire_timers fires the due timers of every worker, because a worker may compute while others switch.
void Scheduler::fire_timers() noexcept {
  std::int64_t due = INT64_MAX;
  for (unsigned i = 0; i < worker_count(); ++i) due = std::min(due, workers_[i]->wheel_.next_due_ns());
  if (due == INT64_MAX) return;
  const std::int64_t now = monotonic_ns();
  for (unsigned i = 0; i < worker_count(); ++i) workers_[i]->wheel_.advance(now);
}

void Scheduler::wake_worker(unsigned index, bool polling) noexcept {
  if (polling) return reactor.interrupt();
  workers_[index]->asleep_.store(0, std::memory_order_release);
  port::futex_wake(workers_[index]->asleep_);
}

void Scheduler::wake_all() noexcept {
  for (unsigned i = 0; i < worker_count(); ++i) wake_worker(i, false);
  reactor.interrupt();
}

}  // namespace coir
