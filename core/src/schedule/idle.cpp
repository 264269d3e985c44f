#include <coir/config.h>
#include <coir/deadline.h>
#include <coir/port/futex.h>

#include "schedule/scheduler.h"
#include "schedule/switching.h"
#include "schedule/worker.h"

// A worker (worker.h) without a fiber to run: it searches, polls and sleeps.

namespace coir {

bool Worker::has_work() const noexcept {
  return !inbox_.empty() || !queue_.empty();
}

#if COIR_SINGLE_WORKER
// idle of the only worker: only the poller, the timers and errands can bring work.
void Worker::idle() noexcept {
  scheduler_->run_errands();
  static_cast<void>(scheduler_->is_quiescent());
  if (has_work() || scheduler_->stopping()) return;
  const std::int64_t due = wheel_.next_due_ns();
  std::int64_t left = -1;
  if (due != INT64_MAX) {
    const std::int64_t now = monotonic_ns();
    cool_down(now);
    left = due - now;
  }
  bump(counters.polls);
  scheduler_->reactor.poll(due == INT64_MAX || left > 0 ? left : 0);
  scheduler_->reactor.dispatch();
  if (wheel_.armed() != 0) wheel_.advance(monotonic_ns());
}
#else
FiberControl* Worker::steal() noexcept {
  if (scheduler_->migrate()) return nullptr;  // there, work goes where the test wants it
  const unsigned count = scheduler_->worker_count();
  const unsigned start = random() % count;
  for (unsigned i = 0; i < count; ++i) {
    Worker& victim = scheduler_->worker((start + i) % count);
    if (&victim == this) continue;
    FiberControl* fiber = victim.queue_.steal_into(queue_);
    if (fiber == nullptr) fiber = steal_woken(victim);
    if (fiber != nullptr) {
      victim.taken_.store(true, std::memory_order_relaxed);
      trace_stolen(this, fiber);
      bump(counters.steals);
      return fiber;
    }
  }
  return nullptr;
}

// left_waiting is a fiber that this worker woke some time ago and has not run, or null. A running pair of fibers that
// wake each other does not count. Any worker.
FiberControl* Worker::left_waiting() noexcept {
  // seq_cst keeps this look behind the idle bit: see any_left_waiting.
  FiberControl* const fiber = woken_.peek(std::memory_order_seq_cst);
  if (fiber == nullptr) return nullptr;
  const std::uint64_t switches = counters.switches.load(std::memory_order_relaxed);
  for (int i = 0; i < kGrace; ++i) Spinlock::relax();
  return counters.switches.load(std::memory_order_relaxed) == switches ? fiber : nullptr;
}

FiberControl* Worker::steal_woken(Worker& victim) noexcept {
  FiberControl* const fiber = victim.left_waiting();
  return fiber != nullptr && victim.woken_.steal(fiber) ? fiber : nullptr;
}

// any_left_waiting is the last look, once the idle bit is set: a worker that wakes a fiber after this look finds the
// bit. Pairs with the fence in wake_if_idle.
bool Worker::any_left_waiting() noexcept {
  for (unsigned i = 0; i < scheduler_->worker_count(); ++i) {
    if (i != index_ && scheduler_->worker(i).left_waiting() != nullptr) return true;
  }
  return false;
}

void Worker::idle() noexcept {
  Scheduler& scheduler = *scheduler_;
  if (!searching_) {
    scheduler.searching_.fetch_add(1, std::memory_order_seq_cst);
    searching_ = true;
  }
  const bool polling = !scheduler.polling_.exchange(true, std::memory_order_acq_rel);
  // A poller does not search, because descriptors would wait for it. For other workers, some microseconds of search
  // spare a system call to wake them.
  const int rounds = scheduler.worker_count() == 1 ? 0 : polling && scheduler.reactor.in_use() ? 2 : kSearchRounds;
  for (int round = 0; round < rounds; ++round) {
    found_ = steal();
    if (found_ != nullptr || !inbox_.empty() || !scheduler.inbox.empty()) {
      if (polling) {
        scheduler.polling_.store(false, std::memory_order_seq_cst);
        released_poller_ = true;
      }
      return;
    }
    for (int i = 0; i < 64; ++i) Spinlock::relax();
  }
  // Stop searching before the last look, below: it finds the work of a thread that pushed in between and woke nobody.
  searching_ = false;
  scheduler.searching_.fetch_sub(1, std::memory_order_seq_cst);

  const std::uint64_t mine = Scheduler::bit(index_, polling);
  asleep_.store(1, std::memory_order_relaxed);
  // seq_cst: the bit is set before the queues are looked at again; pairs with the fence in notify.
  const std::uint64_t idle = scheduler.idle_.fetch_or(mine, std::memory_order_seq_cst) | mine;
  bool sleep = !scheduler.any_work() && !scheduler.stopping();
  // The worker that polled may have stopped since, and may be about to compute: pairs with release_poller.
  if (!polling && !scheduler.polling_.load(std::memory_order_seq_cst)) sleep = false;
  if (sleep && any_left_waiting()) sleep = false;
  if (sleep && scheduler.all_idle(idle)) {
    sleep = scheduler.is_quiescent() && !scheduler.any_work() && !scheduler.stopping();
  }
  if (sleep) {
    std::int64_t due = wheel_.next_due_ns();
    if (polling) {
      for (unsigned i = 0; i < scheduler.worker_count(); ++i) {
        const std::int64_t other = scheduler.worker(i).wheel_.next_due_ns();
        due = other < due ? other : due;
      }
    }
    std::int64_t timeout = -1;
    if (due != INT64_MAX) {
      const std::int64_t now = monotonic_ns();
      cool_down(now);
      timeout = due > now ? due - now : 0;
    }
    if (scheduler.awaits_threads_.load(std::memory_order_relaxed) && (timeout < 0 || timeout > kHopeNs))
      timeout = kHopeNs;
    if (polling) {
      // A busy worker may leave a fiber that it woke waiting without an offer: look for such fibers now and then.
      if (!scheduler.all_idle(scheduler.idle_.load(std::memory_order_relaxed)) &&
          (timeout < 0 || timeout > kPatienceNs)) {
        timeout = kPatienceNs;
      }
      bump(counters.polls);
      scheduler.reactor.poll(timeout);
    } else if (timeout != 0) {
      port::futex_wait(asleep_, 1, timeout);
    }
  }
  const std::uint64_t before = scheduler.idle_.fetch_and(~mine, std::memory_order_seq_cst);
  // After the bit and before any work: see is_quiescent.
  scheduler.withdrawals_.fetch_add(1, std::memory_order_seq_cst);
  trim_if_asked();
  // The thread that cleared the bit counts this worker as searching.
  searching_ = (before & mine) == 0;
  if (polling) {
    // Only after the bit is gone: a fiber that is woken here must not be overlooked by is_quiescent.
    scheduler.reactor.dispatch();
    const std::int64_t now = monotonic_ns();
    for (unsigned i = 0; i < scheduler.worker_count(); ++i) scheduler.worker(i).wheel_.advance(now);
    scheduler.polling_.store(false, std::memory_order_seq_cst);
    released_poller_ = true;
    if (has_work()) scheduler.notify();
  } else if (wheel_.armed() != 0) {
    wheel_.advance(monotonic_ns());
  }
}

// stop_searching is called with work in hand: the last searcher wakes the next, because there may be work for more.
void Worker::stop_searching() noexcept {
  searching_ = false;
  if (scheduler_->searching_.fetch_sub(1, std::memory_order_seq_cst) == 1) scheduler_->notify();
}
#endif

}  // namespace coir
