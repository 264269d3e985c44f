#pragma once

#include <cstdint>

#include <coir/detail/fiber_name.h>
#include <coir/pressure.h>
#include <coir/run_options.h>

#include "fiber/stack_pool.h"
#include "schedule/hooks.h"
#include "schedule/reactor.h"
#include "schedule/visit.h"
#include "schedule/worker.h"

namespace coir {

struct Errand;

namespace detail {
class BlockingPool;
}  // namespace detail

// Scheduler is one run of the runtime: its workers and what they share. A process has one, and one more, on a thread of
// its own, for each coir::Isolate: an isolated one, which shares neither fibers nor stacks nor descriptors with others.
//
// Idle workers. Each bit of `idle_` stands for a worker that sleeps on its futex (low half) or in the poller (high
// half). A thread that pushes work looks at idle_ afterwards. A worker that goes idle sets its bit, then looks for work
// once more. With a full fence between the two steps, at least one of them sees the other (Dekker): no fiber is left
// runnable while a worker sleeps. `searching_` counts the workers that search for work. While there is one, no other is
// woken; the last searcher to find work wakes the next worker.
//
// The poller. While `polling_` is set, a worker polls or is about to. A worker that goes idle and finds it set sleeps
// on its futex: it sets its bit, then looks at polling_ once more. A worker that clears polling_ in order to run a
// fiber looks at idle_ afterwards (release_poller). Both go by one order (seq_cst): either the first sees that nobody
// polls and polls itself, or the second sees the first one's bit and wakes it. As the poller waits for every worker's
// timers, no timer is late.
//
// The guard. Most fibers that a poller runs compute for some microseconds, after which it polls again: to wake another
// worker for that long costs more than the fiber. So while events come, one of the workers on a futex is the guard
// (`guarded_until_ns_`): it looks whether somebody polls, and a worker that runs a fiber wakes nobody if the guard looks
// within kGuardNs. If no descriptor can end the poll, the guard sleeps until kGuardNs after the timer that ends it;
// else it looks every kGuardNs. A guard that has seen no event for a while sleeps for good. It says when it looks, then
// reads polls_until_ns_ once more, or polling_ before it sleeps for good; release_poller reads guarded_until_ns_ after both
// were changed. So either the guard sees that nobody polls, or the releaser wakes a worker: a worker polls within
// kGuardNs while any sleeps.
class Scheduler {
 public:
  static constexpr unsigned kMaxWorkers = 32;

  // The process's scheduler uses the process's stacks, an isolated one its own.
  Scheduler() noexcept;
  explicit Scheduler(StackPool& own) noexcept;

  // isolated tells whether this is the run of one coir::Isolate.
  bool isolated() const noexcept { return isolated_; }

  // The scheduler of the process's run (use it inside a Visit), and the isolated one of the calling thread; or null.
  static Scheduler* of_process() noexcept;
  static Scheduler* isolated_here() noexcept;

  // start makes this the process's scheduler, or the calling thread's if it is isolated.
  // Errors: busy (there is one), no_memory, system.
  std::expected<void, Error> start(const RunOptions& options, unsigned workers, std::size_t default_stack) noexcept;
  std::expected<void, Error> run() noexcept;
  void finish() noexcept;

  // notify wakes an idle worker if there may be work for it. After the push.
  void notify() noexcept;

  bool any_idle() const noexcept { return idle_.load(std::memory_order_relaxed) != 0; }

  // inject makes a fiber runnable from a thread that is no worker of this run.
  void inject(FiberControl* fiber) noexcept;
  // inject_new also counts the fiber, as one that lives from now on, and ends the visit that brought it.
  void inject_new(FiberControl* fiber) noexcept;

  // bring hands the worker of a single-worker build an errand, by any thread inside a Visit; run_errands makes those
  // that were brought, in order.
  void bring(Errand& errand) noexcept;
  void run_errands() noexcept;

  // wake_if_idle has an idle worker look again; false if none sleeps. Any thread.
  bool wake_if_idle() noexcept;

  void cancel_all() noexcept;
  // cancel_from_outside is cancel_all for a thread that is none of this run's; the run goes on until it returns.
  // `reason`, a literal or null, is what cancel_reason returns from then on.
  void cancel_from_outside(const char* reason = nullptr) noexcept;
  const char* cancel_reason() const noexcept { return cancel_reason_.load(std::memory_order_acquire); }

  // fail ends the run with `error`, the root nursery's first unhandled failure, and cancels every fiber.
  void fail(Error error, const detail::FiberName& whose) noexcept;

  // failed is the fiber whose failure run returns.
  const detail::FiberName& failed() const noexcept { return first_failed_; }

  // trim_stacks frees the calling worker's hot stacks and asks the other workers to free theirs. Returns how many bytes
  // were freed at once.
  std::size_t trim_stacks() noexcept;

  // reclaim_stack is the second attempt of a spawn that has found no stack by `error`: where a capacity or a ceiling is
  // reached, it takes the unused stacks out of the workers' caches, returns one, and frees those of other classes.
  FiberControl* reclaim_stack(std::size_t stack_class, Error& error) noexcept;

  bool cancelling() const noexcept { return cancelling_.load(std::memory_order_seq_cst); }
  bool stopping() const noexcept { return stopping_.load(std::memory_order_acquire); }
  // takes_outsiders tells whether a plain thread may spawn: with one worker, only before that worker runs.
  bool takes_outsiders() const noexcept { return kManyWorkers || !running_; }
  // worker_count may fall before the first worker runs, never later.
  unsigned worker_count() const noexcept { return __atomic_load_n(&worker_count_, __ATOMIC_RELAXED); }
  Worker& worker(unsigned index) noexcept { return *workers_[index]; }
  const Worker& worker(unsigned index) const noexcept { return *workers_[index]; }
  bool migrate() const noexcept { return migrate_; }
  bool seeded() const noexcept { return seed_ != 0; }
  std::size_t default_stack() const noexcept { return default_stack_; }

  // hand_to makes a fiber runnable on the given worker: for the test mode that migrates every fiber.
  void hand_to(unsigned index, FiberControl* fiber) noexcept;

  // id_block hands out kIdBlock ids that no run of this process has used.
  static constexpr std::uint64_t kIdBlock = 4096;
  static std::uint64_t id_block() noexcept;

  Reactor reactor;
  StackPool& stacks;
  Inbox inbox;
  detail::BlockingPool* blocking = nullptr;  // where its fibers' blocking calls run; null: the process's pool

  std::int64_t alive() const noexcept;

  // count_resting counts armed resting waits, which are waits on the outside world as those of parked fibers are.
  void count_resting(std::int64_t more) noexcept;

  // Counters of plain threads.
  Atomic<std::uint64_t> outside_spawned{0};
  Atomic<std::int64_t> outside_waits{0};

 private:
  friend class OutsideClaim;
  friend class Worker;

  // Hold keeps the scheduler mapped while one of its fibers, perhaps the last, is woken.
  class Hold;

  enum class DeadlockState : std::uint32_t { none, reporting, reported };

  // Idle bits.
  static constexpr std::uint64_t bit(std::uint32_t index, bool polling) {
    return std::uint64_t{1} << (index + (polling ? 32 : 0));
  }
  bool all_idle(std::uint64_t idle) const noexcept;
  bool any_work() const noexcept;
  void withdraw() noexcept;
  // offer_all_woken has workers put the fibers that they wake where others find them, as nobody can steal them elsewhere.
  void offer_all_woken() noexcept;

  // wakeup.cpp: who is woken for work
  void wake_one() noexcept;
  void release_poller() noexcept;
  void fire_timers() noexcept;
  void wake_worker(unsigned index, bool polling) noexcept;
  void wake_all() noexcept;

  // quiescence.cpp: whether anything is left to do
  bool is_quiescent() noexcept;
  std::int64_t waits_outside() const noexcept;
  bool waits_for_threads() const noexcept;

  void start_threads() noexcept;
  static std::int64_t outside_claims() noexcept;
  static void* thread_main(void* worker) noexcept;

  SharedAtomic<std::uint64_t> idle_{0};
  SharedAtomic<std::uint64_t> withdrawals_{0};  // how often an idle worker took its bit back
  SharedAtomic<std::uint32_t> searching_{0};
  SharedAtomic<std::uint32_t> holds_{0};  // in an isolated one; the process's has a door for them
  SharedAtomic<std::uint32_t> begun_{0};  // 1 once the number of workers is final
  SharedAtomic<bool> polling_{false};
  SharedAtomic<std::int64_t> guarded_until_ns_{0};        // when the guard looks; 0: there is none
  SharedAtomic<std::int64_t> polls_until_ns_{INT64_MAX};  // when the poller looks at all timers anew
  Atomic<std::uint32_t> events_{0};                       // how often a poll has made a fiber runnable; by the poller
  SharedAtomic<bool> stopping_{false};
  SharedAtomic<bool> cancelling_{false};
  SharedAtomic<const char*> cancel_reason_{nullptr};  // before cancelling_
  SharedAtomic<Errand*> errands_{nullptr};
  Atomic<DeadlockState> deadlock_{DeadlockState::none};
  Atomic<bool> awaits_threads_{
      false};  // only a plain thread can still wake a fiber; looked at again while there are any
  enum class Failure : std::uint32_t { none, being_told, told };
  Atomic<Failure> failed_{Failure::none};
  Error failure_;                   // written once, while being_told; read after told
  detail::FiberName first_failed_;  // the same
  Relief hot_stacks_{Pressure::caches,
                     [](void* self, std::size_t) noexcept { return static_cast<Scheduler*>(self)->trim_stacks(); },
                     this};
  const bool isolated_;  // only messages wake its fibers from outside
  bool running_ = false;
  bool migrate_ = false;
  unsigned worker_count_ = 0;
  unsigned reserved_ = 0;  // workers that have memory
  std::uint64_t seed_ = 0;
  std::size_t default_stack_ = 0;
  Worker* workers_[kMaxWorkers] = {};
};

class Scheduler::Hold {
 public:
  explicit Hold(Scheduler& in) noexcept : in_(in) {
    in_.isolated_ ? static_cast<void>(in_.holds_.fetch_add(1, std::memory_order_relaxed)) : door::enter_again();
  }
  // release pairs with the acquire in finish. Nothing of the scheduler is touched after it.
  ~Hold() { in_.isolated_ ? static_cast<void>(in_.holds_.fetch_sub(1, std::memory_order_release)) : door::leave(); }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

 private:
  Scheduler& in_;
};

// OutsideClaim surrounds code that claims and wakes waiters and that a plain thread may run. Between claim and wake a
// fiber is in no queue, and its timer may be gone: without an OutsideClaim it would look stuck. An OutsideClaim does
// not keep a run without fibers from ending, and may begin before a run does. A claimed fiber lives until its wake, and
// keeps its run alive.
class OutsideClaim {
 public:
  OutsideClaim() noexcept : outside_(kManyWorkers && this_worker() == nullptr) {
    if (outside_) begin();
  }
  ~OutsideClaim() {
    if (outside_) end();
  }
  OutsideClaim(const OutsideClaim&) = delete;
  OutsideClaim& operator=(const OutsideClaim&) = delete;

 private:
  static void begin() noexcept;
  static void end() noexcept;
  bool outside_;
};

// check_canary looks at the word below the stack of a fiber without a guard of its own.
inline void check_canary(FiberControl* fiber) noexcept {
  if (fiber->guarded) [[likely]]
    return;
  const std::size_t bytes = nominal_stack_bytes(fiber->stack_class) * kStackInflation;
  const auto* canary = reinterpret_cast<const std::uint64_t*>(StackArena::low_end(fiber, bytes)) - 2;
  if ((canary[0] | canary[1]) != 0) [[unlikely]]
    report_overflow(*fiber);
}

}  // namespace coir
