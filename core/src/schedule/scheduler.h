#pragma once

#include <cstdint>

#include <coir/pressure.h>
#include <coir/run_options.h>

#include "fiber/stack_pool.h"
#include "schedule/hooks.h"
#include "schedule/reactor.h"
#include "schedule/visit.h"
#include "schedule/worker.h"

namespace coir {

namespace detail {
class BlockingPool;
}  // namespace detail

// Scheduler is one run of the runtime: its workers and what they share. A process has one, and one more, on a thread of
// its own, for each coir::Isolate: an isolated one, which shares neither fibers nor stacks nor descriptors with others.
//
// Idle workers. Each bit of `idle_` stands for a worker that sleeps on its futex (low half) or in the poller (high
// half). Who pushes work then looks at idle_; who goes idle sets its bit, then looks for work once more: with a full
// fence between, one of them sees the other (Dekker), so that no fiber is left while a worker sleeps. `searching_`
// counts workers that are on their way to look: while there is one, nobody else is woken; the last one to find work
// wakes the next.
//
// The poller. While `polling_` is set somebody polls, or looks at the poller in passing. Who goes idle and finds it set
// sleeps on its futex, and relies on that: it sets its bit, then looks at polling_ once more. Who clears polling_ and
// goes on to run a fiber then looks at idle_ (let_go_poller). Both in one order (seq_cst): either the first sees that
// nobody polls any more and does so itself, or the second sees its bit and wakes it. So no worker sleeps on its futex
// while the others compute and nobody polls; and as the poller waits for every worker's timers, nobody's are late.
class Scheduler {
 public:
  static constexpr unsigned kMaxWorkers = 32;

  // The process's scheduler uses the process's stacks, an isolated one its own.
  Scheduler() noexcept;
  explicit Scheduler(StackPool& own) noexcept;

  // isolated tells whether this is the run of one coir::Isolate.
  bool isolated() const noexcept { return isolated_; }

  // The scheduler of the process's run, for who visits it, and the isolated one of the calling thread; or null.
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

  // wake_if_idle has an idle worker look again; false if none sleeps. Any thread.
  bool wake_if_idle() noexcept;

  void cancel_all() noexcept;
  // cancel_from_outside is cancel_all for a thread that is none of this run's; the run goes on until it returns.
  void cancel_from_outside() noexcept;

  // fail is the root nursery's: the first failure nobody handled is what run returns, and cancels every fiber.
  void fail(Error error) noexcept;

  // trim_stacks gives the calling worker's hot stacks back at once and asks the other workers to do the same. Returns
  // how many bytes came free at once.
  std::size_t trim_stacks() noexcept;

  bool cancelling() const noexcept { return cancelling_.load(std::memory_order_seq_cst); }
  bool stopping() const noexcept { return stopping_.load(std::memory_order_acquire); }
  // takes_outsiders tells whether a thread that is no worker may spawn: with one worker only before it runs.
  bool takes_outsiders() const noexcept { return kManyWorkers || !running_; }
  unsigned worker_count() const noexcept { return worker_count_; }
  Worker& worker(unsigned index) noexcept { return *workers_[index]; }
  const Worker& worker(unsigned index) const noexcept { return *workers_[index]; }
  bool migrate() const noexcept { return migrate_; }
  bool seeded() const noexcept { return seed_ != 0; }
  std::size_t default_stack() const noexcept { return default_stack_; }

  // hand_to makes a fiber runnable on a worker of choice; the migrating test mode.
  void hand_to(unsigned index, FiberControl* fiber) noexcept;

  // id_block hands out kIdBlock ids that no run of this process has used.
  static constexpr std::uint64_t kIdBlock = 4096;
  static std::uint64_t id_block() noexcept;

  Reactor reactor;
  StackPool& stacks;
  Inbox inbox;
  detail::BlockingPool* blocking = nullptr;  // where its fibers' blocking calls run; null: the process's pool

  std::int64_t alive() const noexcept;

  // What threads that are no workers do is counted here.
  Atomic<std::uint64_t> outside_spawned{0};
  Atomic<std::int64_t> outside_waits{0};

 private:
  friend class OutsideClaim;
  friend class Worker;

  // Hold keeps the scheduler in place past the wake of a fiber of it, which may be the last one.
  class Hold;

  enum class DeadlockState : std::uint32_t { none, reporting, reported };

  // Idle bits.
  static constexpr std::uint64_t bit(std::uint32_t index, bool polling) {
    return std::uint64_t{1} << (index + (polling ? 32 : 0));
  }
  bool all_idle(std::uint64_t idle) const noexcept;
  bool any_work() const noexcept;
  void wake_one() noexcept;
  void let_go_poller() noexcept;
  void fire_timers() noexcept;
  void wake_worker(unsigned index, bool polling) noexcept;
  void wake_all() noexcept;
  void withdraw() noexcept;
  bool is_quiescent() noexcept;
  std::int64_t waits_outside() const noexcept;
  bool waits_for_threads() const noexcept;
  static std::int64_t outside_claims() noexcept;
  static void* thread_main(void* worker) noexcept;

  SharedAtomic<std::uint64_t> idle_{0};
  SharedAtomic<std::uint64_t> withdrawals_{0};  // how often an idle worker took its bit back
  SharedAtomic<std::uint32_t> searching_{0};
  SharedAtomic<std::uint32_t> holds_{0};  // in an isolated one; the process's has a door for them
  SharedAtomic<bool> polling_{false};
  SharedAtomic<bool> stopping_{false};
  SharedAtomic<bool> cancelling_{false};
  Atomic<DeadlockState> deadlock_{DeadlockState::none};
  Atomic<bool> awaits_threads_{
      false};  // only a plain thread can still wake a fiber; looked at again while there are any
  Atomic<bool> failed_{false};
  Error failure_;  // written once, by who sets failed_; read after the last worker has stopped
  Relief hot_stacks_{Pressure::caches,
                     [](void* self, std::size_t) noexcept { return static_cast<Scheduler*>(self)->trim_stacks(); },
                     this};
  const bool isolated_;  // nobody outside wakes its fibers but by message
  bool running_ = false;
  bool migrate_ = false;
  unsigned worker_count_ = 0;
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

// OutsideClaim surrounds what claims waiters and wakes them where a thread that is no worker may do so. Between claim
// and wake a fiber is in no queue, and its timer may be gone: without this it would look stuck. It keeps no run from
// ending that has no fiber left, and needs none: it may begin before a run does. A fiber that was claimed lives until
// its wake, and keeps the run for that.
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
