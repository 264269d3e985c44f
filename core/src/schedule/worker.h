#pragma once

#include <pthread.h>

#include <cstdint>

#include <coir/atomic.h>
#include <coir/config.h>
#include <coir/port/context.h>

#include "fiber/control.h"
#include "fiber/stack_pool.h"
#include "schedule/run_queue.h"
#include "schedule/timer_wheel.h"
#include "schedule/woken_slot.h"

namespace coir {

class Scheduler;
struct SignalStack;

// A context that is switched to receives a message: what to do now that the previous context is saved. The message is
// the previous fiber's control block, with the commit in its low bits (its alignment leaves room); null is nothing.
enum class Commit : std::uintptr_t { parked = 1, yielded, ended, handed_off, owned, taken, mask };

// Worker is a thread that runs fibers. Its own stack runs the loop that looks for work, polls and fires timers; a
// fiber that parks switches straight to the next runnable one and comes to the loop only when there is none, or every
// kTurn switches.
class Worker {
 public:
  Worker(Scheduler& scheduler, std::uint32_t index) noexcept;

  // run is the loop; it returns when the scheduler stops.
  void run() noexcept;

  // suspend saves the running fiber and switches to the next. It returns when the fiber runs again, on any worker.
  static void suspend(FiberControl* self, Commit deed) noexcept;

  // yield is suspend, but returns at once when no other fiber is runnable here.
  static void yield(FiberControl* self) noexcept;

  // leave ends the running fiber: `joiner`, where given, is its joiner, claimed and parked, which goes on in its place.
  [[noreturn]] static void leave(FiberControl* self, Commit deed, FiberControl* joiner) noexcept;

  // call_on_own_stack calls fn(argument), which must not park, on this worker's stack. Called by the running fiber.
  void call_on_own_stack(void (*fn)(void*), void* argument) noexcept;

  // look_around_next makes the next yield go to the loop, which looks at timers and the poller. Called by the running
  // fiber.
  void look_around_next() noexcept { turn_ = 1; }

  // commit carries out the message of a switch, on the new context's side.
  void commit(void* message) noexcept;

  // push makes a fiber runnable here, behind all others. push_woken puts a fiber that the running one woke in front, a
  // bounded number of times in a row. Owner only.
  void push(FiberControl* fiber) noexcept;
  void push_woken(FiberControl* fiber) noexcept;
  // push_in_loop is for a fiber that the loop wakes, push_new for one that is spawned.
  void push_in_loop(FiberControl* fiber) noexcept;
  void push_new(FiberControl* fiber) noexcept;

  FiberControl* current() const noexcept { return current_; }
  // acting is the fiber whose code runs: the current one, or the one that has called call_on_own_stack. Scopes,
  // cancellations and spawns are its own; only a current fiber can wait.
  FiberControl* acting() const noexcept { return current_ != nullptr ? current_ : caller_; }
  // peek is current for other threads: what it was a moment ago.
  [[gnu::noinline, clang::disable_sanitizer_instrumentation]] const FiberControl* peek() const noexcept {
    return __atomic_load_n(&current_, __ATOMIC_RELAXED);
  }
  // peek_acting is acting for other threads.
  [[gnu::noinline, clang::disable_sanitizer_instrumentation]] const FiberControl* peek_acting() const noexcept {
    const FiberControl* const fiber = peek();
    return fiber != nullptr ? fiber : __atomic_load_n(&caller_, __ATOMIC_RELAXED);
  }
  Scheduler& scheduler() const noexcept { return *scheduler_; }
  TimerWheel& wheel() noexcept { return wheel_; }
  const TimerWheel& wheel() const noexcept { return wheel_; }
  StackCache& stacks() noexcept { return stacks_; }
  const StackCache& stacks() const noexcept { return stacks_; }
  std::uint32_t index() const noexcept { return index_; }
  // has_switched tells whether a fiber has left this worker, or come to it, since the last call. Owner only.
  bool has_switched() noexcept {
    const std::uint64_t before = seen_switches_;
    seen_switches_ = counters.switches.load(std::memory_order_relaxed);
    return seen_switches_ != before;
  }
  // tick is the time of this worker's latest look around: at most kTurn switches ago.
  std::uint32_t tick() const noexcept { return tick_; }

  // thread_id is the kernel's id of this worker's thread, 0 while it has none. Any thread.
  int thread_id() const noexcept { return thread_id_.load(std::memory_order_acquire); }

  std::uint64_t next_id() noexcept;
  std::uint32_t random() noexcept;  // the seed's, in a seeded run

  // Counters have one writer, this worker; only their sum over all workers is meaningful.
  struct Counters {
    Atomic<std::uint64_t> spawned, ended, switches, steals, polls;
    Atomic<std::int64_t> fd_waits;  // started here minus ended here
  };
  Counters counters;

 private:
  friend class Scheduler;
  friend struct DebuggerView;

  struct OnOwnStack;

  static constexpr std::uint32_t kTurn = 64;      // switches between two looks at timers, inbox and poller
  static constexpr std::uint32_t kJumpLimit = 3;  // how often in a row a woken fiber may jump the line
  static constexpr int kSearchRounds =
      spins(20);  // how often a worker looks at the others before it sleeps: some microseconds
  static constexpr std::int64_t kShortNs = 50'000;      // a longer search would have spared a sleep as short as this
  static constexpr int kGrace = spins(64);              // how long a thief lets a worker come to the fiber it woke
  static constexpr std::uint16_t kMostSpared = 16'384;  // how many wakes in a row are not offered to others
  // How often a poller looks for fibers that a busy worker keeps: first, and where that one computes on.
  static constexpr std::int64_t kPatienceNs = 1'000'000, kMostPatienceNs = 16'000'000;
  // A guard's watch pays for itself where events come more often than every second of its looks.
  static constexpr std::int64_t kGuardNs = 900'000;
  static constexpr int kLooksForEvent = 2, kMostCredit = 8;
  static constexpr std::int64_t kCoolNs = 1'000'000'000;  // how long a peak's stacks are kept before half of them go
  static constexpr std::int64_t kHopeNs = 500'000'000;    // how long a thread may take to end before a deadlock shows

  FiberControl* pick() noexcept;
  FiberControl* find_work() noexcept;
  void maintain() noexcept;
  void trim_if_asked() noexcept;
  void cool_down(std::int64_t now_ns) noexcept;
  bool has_stacks_to_spare() const noexcept { return stacks_.pooled() > kStackClassCount; }
  void resume(FiberControl* fiber) noexcept;
  struct Offers;
  bool offer_is_due(Offers& offers) noexcept;
  void carry_out(void* message) noexcept;
  void end_owned(FiberControl* fiber) noexcept;

  // idle.cpp: without a fiber to run
  void idle() noexcept;
  void doze() noexcept;
  std::int64_t begin_watch() noexcept;
  void hand_out_events() noexcept;
  std::int64_t time_until(std::int64_t due_ns) noexcept;
  std::int64_t patience() noexcept;
  bool is_about_to_run(const Worker& victim) const noexcept;
  void stop_searching() noexcept;
  FiberControl* steal() noexcept;
  FiberControl* steal_woken(Worker& victim) noexcept;
  FiberControl* left_waiting() noexcept;
  bool any_left_waiting() noexcept;
  bool has_work() const noexcept;

  static void switch_from(FiberControl* self, Worker& worker, FiberControl* next, void* message) noexcept;

  // The fields that every switch touches come first.
  FiberControl* current_ = nullptr;
  void* loop_sp_ = nullptr;
  std::uint32_t turn_ = kTurn;
  std::uint32_t jumps_ = 0;
  std::uint32_t tick_ = 0;
  bool seeded_ = false;
  Scheduler* scheduler_;
  WokenSlot woken_;
  Atomic<bool> keeps_woken_{true};  // where woken_ may be used: thieves can steal it, or there are none
  Atomic<bool> taken_{false};       // a thief has taken something since the last offer
  // Offers tells which fibers are offered to idle workers: each offer that nobody takes doubles those that are not.
  struct Offers {
    std::uint16_t spared = 0, left = 0;
    bool due() noexcept { return left == 0 || left-- == 0; }
    void note() noexcept {
      left = spared = spared < kMostSpared ? static_cast<std::uint16_t>(2 * spared + 1) : kMostSpared;
    }
  };
  Offers woken_offers_, new_offers_;
  RunQueue queue_;
  Inbox inbox_;
  StackCache stacks_;
  Atomic<bool> trim_{false};  // the hot stacks are to be freed
  std::int64_t cooled_at_ns_ = 0;
  std::uint64_t seen_switches_ = 0;
  std::uint64_t others_switches_ = 0;
  std::int64_t patience_ns_ = kPatienceNs;
  std::uint64_t next_id_ = 0, last_id_ = 0;
  std::uint64_t random_;
  std::uint32_t index_;
  bool searching_ = false;
  bool called_ = false;  // it was woken for work, and has not looked yet
  int search_rounds_ = kSearchRounds;
  bool released_poller_ = false;  // it has cleared polling_ since it ran a fiber
  bool hands_out_ = false;        // it wakes the fibers of events and timers, and then tells others of those
  FiberControl* found_ = nullptr;
  FiberControl* caller_ = nullptr;  // that has called call_on_own_stack
  SanitizerContext sanitizer_;
  TimerWheel wheel_;
  SharedAtomic<std::uint32_t> asleep_{0};
  pthread_t thread_{};
  SharedAtomic<int> thread_id_{0};
  SignalStack* signal_stack_ = nullptr;
};

// this_worker is the calling thread's worker, or null. Not inlined where fibers migrate: a thread-local address taken
// before a switch belongs to another thread after it.
#if COIR_SINGLE_WORKER
extern constinit thread_local Worker* t_worker;  // constinit spares each use a test for a constructor
inline Worker* this_worker() noexcept {
  return t_worker;
}
#else
Worker* this_worker() noexcept;
#endif

// wake_fiber is every fiber's Waiter::Wake.
void wake_fiber(Waiter& waiter) noexcept;

// wake_elsewhere is wake() for a fiber that may belong to another run than the caller, as messages between runs need.
void wake_elsewhere(FiberControl& fiber) noexcept;

}  // namespace coir
