#include <coir/config.h>
#include <coir/deadline.h>
#include <coir/port/barrier.h>
#include <coir/port/futex.h>

#include <algorithm>
#include <utility>

#include "schedule/scheduler.h"
#include "schedule/switching.h"
#include "schedule/worker.h"

// A worker (worker.h) without a fiber to run: it searches, polls and sleeps.

namespace coir {

bool Worker::has_work() const noexcept {
  return !inbox_.empty() || !queue_.empty();
}

// time_until is how long a sleep may last: negative without end. A worker with stacks left over from a peak wakes to free
// them.
std::int64_t Worker::time_until(std::int64_t due_ns) noexcept {
  std::int64_t timeout = -1;
  if (due_ns != INT64_MAX || has_stacks_to_spare()) {
    const std::int64_t now = monotonic_ns();
    cool_down(now);
    if (has_stacks_to_spare()) due_ns = std::min(due_ns, cooled_at_ns_ + kCoolNs);
    if (due_ns != INT64_MAX) timeout = std::max(due_ns - now, std::int64_t{0});
  }
  if (scheduler_->awaits_threads_.load(std::memory_order_relaxed) && (timeout < 0 || timeout > kHopeNs)) return kHopeNs;
  return timeout;
}

#if COIR_SINGLE_WORKER
// idle of the only worker: only the poller, the timers and errands can bring work.
void Worker::idle() noexcept {
  scheduler_->run_errands();
  // is_quiescent does not look at the queue: an errand may have filled it.
  if (has_work()) return;
  static_cast<void>(scheduler_->is_quiescent());
  if (has_work() || scheduler_->stopping()) return;
  const std::int64_t timeout = time_until(wheel_.next_due_ns());
  bump(counters.polls);
  scheduler_->reactor.poll(timeout);
  scheduler_->reactor.dispatch();
  if (wheel_.armed() != 0) wheel_.advance(monotonic_ns());
}
#else
FiberControl* Worker::steal() noexcept {
  if (scheduler_->migrate()) return nullptr;  // there, work goes where the test wants it
  const unsigned count = scheduler_->worker_count();
  const unsigned start = random() % count;
  const bool called = std::exchange(called_, false);
  for (unsigned i = 0; i < count; ++i) {
    Worker& victim = scheduler_->worker((start + i) % count);
    if (&victim == this) continue;
    // A worker that switches comes to its only fiber itself, unless it has offered it: fibers that talk stay together.
    const bool leaves = !called && victim.queue_.size() == 1 && is_about_to_run(victim);
    FiberControl* fiber = leaves ? nullptr : victim.queue_.steal_into(queue_);
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

bool Worker::is_about_to_run(const Worker& victim) const noexcept {
  const std::uint64_t switches = victim.counters.switches.load(std::memory_order_relaxed);
  for (int i = 0; i < kGrace; ++i) Spinlock::relax();
  return victim.counters.switches.load(std::memory_order_relaxed) != switches;
}

// left_waiting is a fiber that this worker woke some time ago and has not run, or null. A running pair of fibers that
// wake each other does not count. Any worker.
FiberControl* Worker::left_waiting() noexcept {
  // seq_cst keeps this look behind the idle bit: see any_left_waiting.
  FiberControl* const fiber = woken_.peek(std::memory_order_seq_cst);
  if (fiber == nullptr || !keeps_woken_.load(std::memory_order_relaxed)) return nullptr;
  return is_about_to_run(*this) ? nullptr : fiber;
}

FiberControl* Worker::steal_woken(Worker& victim) noexcept {
  FiberControl* const fiber = victim.left_waiting();
  if (fiber == nullptr) return nullptr;
  const WokenSlot::Raid raid = victim.woken_.steal(fiber);
  if (raid == WokenSlot::Raid::impossible) scheduler_->offer_all_woken();
  return raid == WokenSlot::Raid::entered ? fiber : nullptr;
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
  // spare a system call to wake them, where the work comes as soon; each search in vain halves the next.
  const int most = scheduler.worker_count() == 1 ? 0 : polling && scheduler.reactor.in_use() ? 2 : kSearchRounds;
  const int rounds = std::min(most, search_rounds_);
  for (int round = 0; round < rounds; ++round) {
    found_ = steal();
    if (found_ != nullptr || !inbox_.empty() || !scheduler.inbox.empty()) {
      search_rounds_ = kSearchRounds;
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
  const std::int64_t from = monotonic_ns();
  // The worker that polled may have stopped since, and may be about to compute: pairs with release_poller.
  if (!polling && !scheduler.polling_.load(std::memory_order_seq_cst)) sleep = false;
  if (sleep && any_left_waiting()) sleep = false;
  if (sleep && scheduler.all_idle(idle)) {
    sleep = scheduler.is_quiescent() && !scheduler.any_work() && !scheduler.stopping();
  }
  if (sleep && polling) {
    // A busy worker may leave a fiber that it woke waiting without an offer: look for such fibers now and then.
    std::int64_t longest = -1;
    if (!scheduler.all_idle(scheduler.idle_.load(std::memory_order_relaxed))) longest = patience();
    // Until polls_until_ns_ is known, a worker that goes to sleep minds its own timers: seq_cst pairs with doze.
    std::int64_t due = INT64_MAX;
    for (unsigned i = 0; i < scheduler.worker_count(); ++i) {
      const std::int64_t other = scheduler.worker(i).wheel_.next_due_ns();
      due = other < due ? other : due;
    }
    std::int64_t timeout = time_until(due);
    if (longest >= 0 && (timeout < 0 || timeout > longest)) timeout = longest;
    scheduler.polls_until_ns_.store(due, std::memory_order_seq_cst);
    bump(counters.polls);
    scheduler.reactor.poll(timeout);
    scheduler.polls_until_ns_.store(INT64_MAX, std::memory_order_seq_cst);
  } else if (sleep) {
    doze();
  }
  const std::uint64_t before = scheduler.idle_.fetch_and(~mine, std::memory_order_seq_cst);
  // After the bit and before any work: see is_quiescent.
  scheduler.withdrawals_.fetch_add(1, std::memory_order_seq_cst);
  trim_if_asked();
  // The thread that cleared the bit counts this worker as searching.
  searching_ = called_ = (before & mine) == 0;
  const bool in_vain = !searching_ || monotonic_ns() - from > kShortNs;
  search_rounds_ = in_vain ? std::max(search_rounds_ / 2, 1) : kSearchRounds;
  if (polling) {
    // Only after the bit is gone: a fiber that is woken here must not be overlooked by is_quiescent.
    hand_out_events();
  } else if (wheel_.armed() != 0) {
    wheel_.advance(monotonic_ns());
  }
}

// patience is how long the poller sleeps while others are busy. If they have not switched since it looked last, they
// offer what they wake next, and it sleeps twice as long: until it is woken so, each of them has only the fiber that it
// runs, and minds its timers itself when that parks.
std::int64_t Worker::patience() noexcept {
  Scheduler& scheduler = *scheduler_;
  std::uint64_t switches = 0;
  for (unsigned i = 0; i < scheduler.worker_count(); ++i) {
    switches += scheduler.worker(i).counters.switches.load(std::memory_order_relaxed);
  }
  if (std::exchange(others_switches_, switches) != switches) return patience_ns_ = kPatienceNs;
  for (unsigned i = 0; i < scheduler.worker_count(); ++i) {
    scheduler.worker(i).taken_.store(true, std::memory_order_relaxed);
  }
  // Either a busy worker sees the mark when it wakes a fiber, or that fiber is seen here.
  if (!port::barrier_everywhere()) return patience_ns_ = kPatienceNs;
  if (scheduler.any_work() || any_left_waiting()) return 0;
  return patience_ns_ = std::min(2 * patience_ns_, kMostPatienceNs);
}

// hand_out_events wakes the fibers of events and timers. The first of them runs here at once; other workers are notified
// of the rest.
void Worker::hand_out_events() noexcept {
  Scheduler& scheduler = *scheduler_;
  hands_out_ = true;
  scheduler.reactor.dispatch();
  const std::int64_t now = monotonic_ns();
  for (unsigned i = 0; i < scheduler.worker_count(); ++i) scheduler.worker(i).wheel_.advance(now);
  hands_out_ = false;
  if (!queue_.empty()) bump(scheduler.events_);
  scheduler.polling_.store(false, std::memory_order_seq_cst);
  released_poller_ = true;
  if (!inbox_.empty() || queue_.size() > 1) scheduler.notify();
}

// doze sleeps on the futex while another worker polls: as the guard (see scheduler.h), or until it is woken. The poller
// minds this worker's timers, unless one of them is due before its poll ends.
void Worker::doze() noexcept {
  Scheduler& scheduler = *scheduler_;
  std::uint32_t events = scheduler.events_.load(std::memory_order_relaxed);
  for (int credit = kLooksForEvent;;) {
    std::int64_t due = wheel_.next_due_ns();
    if (due >= scheduler.polls_until_ns_.load(std::memory_order_seq_cst)) due = INT64_MAX;
    const std::int64_t own = time_until(due);
    if (own == 0) return;
    const std::int64_t watch = credit > 0 ? begin_watch() : -1;
    const bool guards = watch >= 0;
    const bool till_own = own > 0 && (!guards || own <= watch);
    port::futex_wait(asleep_, 1, till_own ? own : watch);
    if (guards) scheduler.guarded_until_ns_.store(0, std::memory_order_seq_cst);
    if (!guards || till_own || asleep_.load(std::memory_order_acquire) == 0) return;
    // seq_cst: guarded_until_ns_ is cleared before this look; pairs with release_poller.
    if (!scheduler.polling_.load(std::memory_order_seq_cst) || scheduler.any_work()) return;
    const std::uint32_t seen = scheduler.events_.load(std::memory_order_relaxed);
    credit = std::min(credit - 1 + kLooksForEvent * static_cast<int>(std::min(seen - events, 4u)), kMostCredit);
    events = seen;
  }
}

// begin_watch makes this worker the guard, and returns how long it sleeps before it looks; -1 where there is a guard.
std::int64_t Worker::begin_watch() noexcept {
  Scheduler& scheduler = *scheduler_;
  const std::int64_t now = monotonic_ns();
  std::int64_t none = 0;
  if (!scheduler.guarded_until_ns_.compare_exchange_strong(none, now + kGuardNs, std::memory_order_seq_cst)) return -1;
  const std::int64_t polls_until = scheduler.polls_until_ns_.load(std::memory_order_seq_cst);
  if (scheduler.reactor.in_use() || polls_until <= now || polls_until > INT64_MAX - kGuardNs) return kGuardNs;
  scheduler.guarded_until_ns_.store(polls_until + kGuardNs, std::memory_order_seq_cst);
  // seq_cst pairs with release_poller, before which the poller has changed polls_until_ns_.
  if (scheduler.polls_until_ns_.load(std::memory_order_seq_cst) == polls_until) return polls_until + kGuardNs - now;
  scheduler.guarded_until_ns_.store(now + kGuardNs, std::memory_order_seq_cst);
  return kGuardNs;
}

// stop_searching is called with work in hand: the last searcher wakes the next, because there may be work for more.
void Worker::stop_searching() noexcept {
  searching_ = false;
  if (scheduler_->searching_.fetch_sub(1, std::memory_order_seq_cst) == 1) scheduler_->notify();
}
#endif

}  // namespace coir
