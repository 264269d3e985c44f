#include "schedule/scheduler.h"

#include <errno.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <new>
#include <utility>

#include <coir/deadline.h>
#include <coir/port/barrier.h>
#include <coir/port/futex.h>
#include <coir/port/limits.h>
#include <coir/port/memory.h>

#include "base/fallback.h"
#include "base/line.h"
#include "base/thread.h"
#include "fiber/paint.h"
#include "memory/heap.h"
#include "schedule/debugger_view.h"

namespace coir {

namespace {

constinit SharedAtomic<Scheduler*> g_scheduler{nullptr};
constinit thread_local Scheduler* t_isolated = nullptr;
constinit StackPool g_stacks;
constinit SharedAtomic<std::uint64_t> g_next_block{0};
constinit SharedAtomic<std::int64_t> g_outside_claims{0};

constexpr std::size_t kMostFds = std::size_t{1} << 20;
constexpr std::uint32_t kIsolatedShare = 16;  // how many times less address space for stacks an isolated run has

std::size_t fd_table_size() noexcept {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 65536;
  return limit.rlim_max > kMostFds ? kMostFds : static_cast<std::size_t>(limit.rlim_max);
}

}  // namespace

// Debuggers read it; nothing here does.
extern "C" {
[[gnu::used, gnu::retain]] extern constinit const DebuggerView coir_debugger_view =
    DebuggerView::of(&g_stacks, &g_scheduler);
}

Scheduler::Scheduler() noexcept : stacks(g_stacks), isolated_(false) {}
Scheduler::Scheduler(StackPool& own) noexcept : stacks(own), isolated_(true) {}

Scheduler* Scheduler::of_process() noexcept {
  return g_scheduler.load(std::memory_order_acquire);
}

// Not inlined, because it may be called before and after a switch. A thread-local address taken before a switch belongs
// to a thread of the same run: an isolated run has one thread, and on the process's threads the value is null.
[[gnu::noinline]] Scheduler* Scheduler::isolated_here() noexcept {
  return t_isolated;
}

std::uint64_t Scheduler::id_block() noexcept {
  return g_next_block.fetch_add(1, std::memory_order_relaxed) * kIdBlock + 1;
}

std::expected<void, Error> Scheduler::start(const RunOptions& options, unsigned workers,
                                            std::size_t default_stack) noexcept {
  Scheduler* none = nullptr;
  if (isolated_) {
    t_isolated = this;
  } else if (!g_scheduler.compare_exchange_strong(none, this)) {
    return std::unexpected(Error{ErrorCode::busy});
  }
  migrate_ = options.migrate && workers > 1;
  seed_ = options.seed;
  default_stack_ = default_stack;
  stacks.prepare(isolated_ ? kIsolatedShare : 1);
  if (const int error = reactor.open(fd_table_size(), options.force_ppoll); error != 0) {
    withdraw();
    return std::unexpected(Error::from_errno(error));
  }
  if (reactor.fell_back()) tell_fallback(Fallback::ppoll);
  install_overflow_report();
  const bool stealable = workers == 1 || port::prepare_barrier();
  for (unsigned i = 0; i < workers; ++i) {
    void* place = port::reserve(sizeof(Worker));
    if (place == nullptr) {
      finish();
      return std::unexpected(Error{ErrorCode::no_memory});
    }
    workers_[i] = new (place) Worker(*this, i);
    workers_[i]->stacks_.set_limit(options.hot_stacks != 0 ? options.hot_stacks : port::limits().hot_stacks);
    if (seed_ != 0) {
      workers_[i]->random_ = seed_;
      workers_[i]->seeded_ = true;
    }
    reserved_ = i + 1;
  }
  worker_count_ = workers;
  if (!stealable) offer_all_woken();
  Pressure::add(hot_stacks_);
  if (!isolated_) door::open();  // from here on visitors find all of it
  return {};
}

// thread_main waits until it is known how many workers there are.
void* Scheduler::thread_main(void* worker) noexcept {
  auto* const self = static_cast<Worker*>(worker);
  SharedAtomic<std::uint32_t>& begun = self->scheduler_->begun_;
  // acquire pairs with the release in run.
  while (begun.load(std::memory_order_acquire) == 0) port::futex_wait(begun, 0, -1);
  self->run();
  return nullptr;
}

// start_threads starts the threads of the workers beside the caller. If one cannot start, the run goes on with those
// that can: no worker runs before that is known.
void Scheduler::start_threads() noexcept {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kWorkerThreadBytes);
  const unsigned wanted = worker_count();
  int error = 0;
  unsigned started = 1;
  while (started < wanted) {
    error = pthread_create(&workers_[started]->thread_, &attributes, thread_main, workers_[started]);
    if (error != 0) break;
    ++started;
  }
  pthread_attr_destroy(&attributes);
  if (started < wanted) {
    const char* const why = describe(Error::from_errno(error));
    Line().add("coir: ", started, " workers of ", wanted, ": no thread can start: ", why, "\n").send(STDERR_FILENO);
    // A visitor may be looking at the others, which stay until the end of the run.
    __atomic_store_n(&worker_count_, started, __ATOMIC_RELAXED);
  }
  begun_.store(1, std::memory_order_release);
  for (unsigned i = 1; i < started; ++i) port::futex_wake(begun_);
}

std::expected<void, Error> Scheduler::run() noexcept {
  running_ = true;
  if constexpr (kManyWorkers) start_threads();
  workers_[0]->run();
  if constexpr (kManyWorkers) {
    for (unsigned i = 1; i < worker_count(); ++i) pthread_join(workers_[i]->thread_, nullptr);
  }
  if (deadlock_.load(std::memory_order_acquire) != DeadlockState::none)
    return std::unexpected(Error{ErrorCode::deadlock});
  Failure failed = failed_.load(std::memory_order_acquire);
  for (SpinWait turn; failed == Failure::being_told; turn.pause()) failed = failed_.load(std::memory_order_acquire);
  if (failed == Failure::told) return std::unexpected(failure_);
  return {};
}

std::int64_t Scheduler::outside_claims() noexcept {
  return g_outside_claims.load(std::memory_order_seq_cst);
}

void OutsideClaim::begin() noexcept {
  g_outside_claims.fetch_add(1, std::memory_order_seq_cst);
}

// end makes an idle worker look again: this claim may have been the reason why the workers kept the run.
void OutsideClaim::end() noexcept {
  g_outside_claims.fetch_sub(1, std::memory_order_seq_cst);
  if (const Visit run; run) run->wake_if_idle();
}

void Scheduler::finish() noexcept {
  // A thread inside may wait for its errand.
  while (!isolated_ && !door::close()) {
    if constexpr (!kManyWorkers) run_errands();
    sched_yield();
  }
  // The errand of a CrossThreadWakeup outlives the run and may not stay listed here: no thread waits for its end.
  if constexpr (!kManyWorkers) run_errands();
  while (holds_.load(std::memory_order_acquire) != 0) sched_yield();
  Pressure::remove(hot_stacks_);
  remove_overflow_report();
  write_stack_use();
  for (unsigned i = 0; i < reserved_; ++i) port::release(workers_[i], sizeof(Worker));
  worker_count_ = 0;
  reserved_ = 0;
  reactor.close();
  stacks.empty();
  withdraw();
  enter_heap();
}

void Scheduler::offer_all_woken() noexcept {
  tell_fallback(Fallback::woken_slot);
  for (unsigned i = 0; i < worker_count(); ++i) workers_[i]->keeps_woken_.store(false, std::memory_order_relaxed);
}

void Scheduler::withdraw() noexcept {
  if (isolated_) {
    t_isolated = nullptr;
  } else {
    g_scheduler.store(nullptr, std::memory_order_release);
  }
}

bool Scheduler::all_idle(std::uint64_t idle) const noexcept {
  return static_cast<unsigned>(std::popcount(idle)) == worker_count();
}

bool Scheduler::any_work() const noexcept {
  if (!inbox.empty()) return true;
  for (unsigned i = 0; i < worker_count(); ++i) {
    if (workers_[i]->has_work()) return true;
  }
  return false;
}

void Scheduler::fail(Error error, const detail::FiberName& whose) noexcept {
  Failure none = Failure::none;
  if (!failed_.compare_exchange_strong(none, Failure::being_told, std::memory_order_relaxed)) return;
  failure_ = error;
  first_failed_ = whose;
  // release pairs with the acquire in run: a plain thread that drops a handle may be late.
  failed_.store(Failure::told, std::memory_order_release);
  cancel_all();
}

void Scheduler::cancel_all() noexcept {
  cancelling_.store(true, std::memory_order_seq_cst);
  stacks.for_each([](FiberControl& fiber) {
    const std::uint64_t id = fiber.id.load(std::memory_order_acquire);
    if (id != 0 && fiber.claim_ticket(WakeReason::cancelled, id) == Waiter::Claim::parked) wake_elsewhere(fiber);
  });
}

void Scheduler::cancel_from_outside(const char* reason) noexcept {
  const Hold hold(*this);
  if (reason != nullptr) cancel_reason_.store(reason, std::memory_order_release);
  // Between its claim and its wake a fiber is in no queue: until then it counts as one that waits for the outside.
  outside_waits.fetch_add(1, std::memory_order_seq_cst);
  cancel_all();
  outside_waits.fetch_sub(1, std::memory_order_seq_cst);
  wake_if_idle();
}

std::size_t Scheduler::trim_stacks() noexcept {
  Worker* own = this_worker();
  if (own != nullptr && &own->scheduler() != this) own = nullptr;
  for (unsigned i = 0; i < worker_count(); ++i) {
    if (workers_[i] != own) workers_[i]->trim_.store(true, std::memory_order_relaxed);
  }
  if (kManyWorkers && worker_count() > 1) wake_all();
  return own != nullptr ? own->stacks_.trim(stacks) : 0;
}

// If the kernel has no barrier for a raid, the other workers are asked to free their stacks, which is too late for
// this spawn.
FiberControl* Scheduler::reclaim_stack(std::size_t stack_class, Error& error) noexcept {
  if (error != ErrorCode::limit) return nullptr;
  Worker* own = this_worker();
  if (own != nullptr && &own->scheduler() != this) own = nullptr;
  std::size_t freed = own != nullptr ? own->stacks_.trim(stacks) : 0;
  FiberControl* found = nullptr;
  for (unsigned i = 0; i < worker_count(); ++i) {
    Worker& other = *workers_[i];
    if (&other == own || other.stacks_.pooled() == 0) continue;
    if (!port::prepare_barrier()) {
      other.trim_.store(true, std::memory_order_relaxed);
      continue;
    }
    for (std::size_t each = 0; each < kStackClassCount; ++each) {
      FiberControl* taken = other.stacks_.raid(each);
      if (each == stack_class && found == nullptr && taken != nullptr) found = std::exchange(taken, taken->next);
      while (FiberControl* const control = taken) {
        taken = control->next;
        stacks.arena(each).cool(control);
        ++freed;
      }
    }
  }
  return found != nullptr || freed == 0 ? found : stacks.arena(stack_class).acquire(error);
}

}  // namespace coir
