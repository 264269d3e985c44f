#include "schedule/worker.h"

#include <unistd.h>

#include <bit>

#include <coir/budget.h>
#include <coir/config.h>
#include <coir/deadline.h>
#include <coir/port/futex.h>

#include "fiber/paint.h"
#include "schedule/switching.h"
#include "schedule/tick.h"

namespace coir {

#if COIR_SINGLE_WORKER
constinit thread_local Worker* t_worker = nullptr;
#else
static constinit thread_local Worker* t_worker = nullptr;

[[gnu::noinline]] Worker* this_worker() noexcept {
  asm volatile("");  // keeps the compiler from taking two calls for one
  return t_worker;
}
#endif

Worker::Worker(Scheduler& scheduler, std::uint32_t index) noexcept
    : counters{}, scheduler_(&scheduler), random_(0x9e3779b97f4a7c15u * (index + 1)), index_(index) {}

void Worker::carry_out(void* message) noexcept {
  const auto bits = reinterpret_cast<std::uintptr_t>(message);
  auto* fiber = reinterpret_cast<FiberControl*>(bits & ~static_cast<std::uintptr_t>(Commit::mask));
  switch (static_cast<Commit>(bits & static_cast<std::uintptr_t>(Commit::mask))) {
    case Commit::parked: {
      const std::uint64_t id = fiber->id.load(std::memory_order_relaxed);
      if (!fiber->commit()) {
        fiber->state.store(FiberControl::State::runnable, std::memory_order_relaxed);
        push(fiber);
        scheduler_->notify();  // this worker may run a fiber that computes
      } else if (fiber->cancelled_id.load(std::memory_order_seq_cst) == id || scheduler_->cancelling()) {
        // The mark came while the fiber was being saved, and found it neither armed nor parked. The fiber may run
        // elsewhere by now: the ticket keeps this claim from any other fiber.
        if (fiber->claim_ticket(WakeReason::cancelled, id) == Waiter::Claim::parked) fiber->wake();
      }
      break;
    }
    case Commit::yielded:
      // Behind the overflow, where every fiber has waited longer.
      if (scheduler_->inbox.empty()) [[likely]] {
        push(fiber);
      } else {
        scheduler_->inbox.push(fiber);
      }
      scheduler_->notify();
      break;
    case Commit::handed_off:  // in commit
    case Commit::taken:
    case Commit::ended:
      bump(counters.ended);
      note_stack_use(fiber);
      fiber->sanitizer.ended();
      fiber->id.store(0, std::memory_order_relaxed);
      fiber->state.store(FiberControl::State::free, std::memory_order_relaxed);
      stacks_.release(scheduler_->stacks, fiber);
      break;
    case Commit::owned:
      end_owned(fiber);
      break;
    case Commit::mask:
      break;
  }
}

// end_owned finishes a fiber whose nursery, failure or waiters need more than recycling its stack.
void Worker::end_owned(FiberControl* fiber) noexcept {
  bump(counters.ended);
  note_stack_use(fiber);
  fiber->sanitizer.ended();
  Waiter* woken = nullptr;
  if (fiber->join.load(std::memory_order_relaxed) == FiberControl::kDetached) {
    fiber->id.store(0, std::memory_order_relaxed);
    fiber->state.store(FiberControl::State::free, std::memory_order_relaxed);
    if (fiber->nursery != nullptr) woken = unlink_from_nursery(fiber);
    stacks_.release(scheduler_->stacks, fiber);
    if (woken != nullptr) woken->wake();
    return;
  }
  // Read now: once the join word is final the control block is the handle's.
  detail::WaitNode* const told = fiber->waiting;
  if (fiber->fails && !fiber->taken) {
    // For reports, before the holder of the handle may take the fiber away.
    fiber->wait_object.store(std::bit_cast<std::int64_t>(*fiber->failure), std::memory_order_relaxed);
    fiber->state.store(FiberControl::State::failed, std::memory_order_release);
  }
  if (fiber->taken) {
    // release pairs with the acquire of the one that takes it; its nursery has been told before.
    fiber->join.store(FiberControl::kTaken, std::memory_order_release);
  } else if (fiber->nursery != nullptr) {
    woken = end_held_in_nursery(fiber);
  } else {
    // release pairs with the acquire of the handle's holder.
    fiber->join.store(fiber->fails ? FiberControl::kFailed : FiberControl::kDone, std::memory_order_release);
  }
  wake_told(told);
  if (woken != nullptr) woken->wake();
}

// A fiber that wakes another may go on computing while a worker sleeps: push_woken offers the woken fiber to that
// worker. Two fibers that wake each other in turn need no offer, which costs a system call: each offer that nobody
// takes doubles the wakes until the next one. A poller that looks every kPatienceNs finds a fiber that was not offered.
void Worker::push_woken(FiberControl* fiber) noexcept {
  const bool offers = kManyWorkers && scheduler_->worker_count() > 1 && offer_is_due(woken_offers_);
  if (!keeps_woken_.load(std::memory_order_relaxed) || (offers && scheduler_->any_idle())) {
    push(fiber);  // where others take it without a barrier
    if (offers) woken_offers_.note();
    return scheduler_->notify();
  }
  if (FiberControl* const displaced = woken_.exchange(fiber); displaced != nullptr) {
    push(displaced);
    scheduler_->notify();
  } else if (offers && scheduler_->wake_if_idle()) {
    woken_offers_.note();
  }
}

// A fiber that is joined soon needs no offer either: what nobody takes is offered less and less.
void Worker::push_new(FiberControl* fiber) noexcept {
  push(fiber);
  if constexpr (!kManyWorkers) return;
  if (hands_out_ || scheduler_->worker_count() == 1) return;
  if (current_ == nullptr) return scheduler_->notify();
  if (offer_is_due(new_offers_) && scheduler_->wake_if_idle()) new_offers_.note();
}

inline bool Worker::offer_is_due(Offers& offers) noexcept {
  if (taken_.load(std::memory_order_relaxed)) {
    taken_.store(false, std::memory_order_relaxed);
    woken_offers_ = new_offers_ = {};
  }
  return offers.due();
}

void wake_fiber(Waiter& waiter) noexcept {
  port::expect_no_spinlock("a wakeup");
  auto* fiber = static_cast<FiberControl*>(&waiter);
  fiber->state.store(FiberControl::State::runnable, std::memory_order_relaxed);
  Worker* const worker = this_worker();
  trace_woken(worker, fiber);
  if (worker == nullptr) return fiber->worker->scheduler().inject(fiber);
  Scheduler& scheduler = worker->scheduler();
  if (scheduler.migrate()) [[unlikely]] {
    // Test mode: never the worker that it parked on.
    const unsigned next = (fiber->worker->index() + 1) % scheduler.worker_count();
    return scheduler.hand_to(next, fiber);
  }
  if (worker->current() != nullptr && !scheduler.seeded()) return worker->push_woken(fiber);
  worker->push_in_loop(fiber);
}

// push_in_loop: the loop runs the fiber next. Events and timers may wake several, of which it tells when they are all
// in the queue.
void Worker::push_in_loop(FiberControl* fiber) noexcept {
  push(fiber);
  if (!hands_out_) scheduler_->notify();
}

void wake_elsewhere(FiberControl& fiber) noexcept {
  Scheduler& home = fiber.worker->scheduler();
  if (const Worker* const worker = this_worker(); worker != nullptr && &worker->scheduler() == &home)
    return fiber.wake();
  fiber.state.store(FiberControl::State::runnable, std::memory_order_relaxed);
  home.inject(&fiber);
}

std::uint32_t Worker::random() noexcept {  // xorshift64* (Vigna)
  random_ ^= random_ >> 12;
  random_ ^= random_ << 25;
  random_ ^= random_ >> 27;
  return static_cast<std::uint32_t>(random_ * 0x2545f4914f6cdd1du >> 32);
}

void Worker::run() noexcept {
  t_worker = this;
  sanitizer_.thread_stack();
  signal_stack_ = add_signal_stack();
  thread_id_.store(gettid(), std::memory_order_release);
  tick_ = tick_now();
  detail::t_budget = kBudget;
  while (!scheduler_->stopping()) {
    if (FiberControl* fiber = find_work(); fiber != nullptr) {
      if (kManyWorkers && searching_) [[unlikely]]
        stop_searching();
      if (kManyWorkers && released_poller_) [[unlikely]] {
        released_poller_ = false;
        scheduler_->release_poller();
      }
      resume(fiber);
    } else {
      const std::int64_t idle_from = trace_idle_from();
      idle();
      trace_idle(this, idle_from);
      tick_ = tick_now();
    }
  }
  thread_id_.store(0, std::memory_order_relaxed);
  remove_signal_stack(signal_stack_);
  t_worker = nullptr;
}

// find_work looks everywhere but in the other workers' queues.
FiberControl* Worker::find_work() noexcept {
  if (turn_ <= 1) {  // at 1, pick would send back here
    maintain();
    turn_ = kTurn;
  }
  if (FiberControl* fiber = found_; fiber != nullptr) {
    found_ = nullptr;
    return fiber;
  }
  if (FiberControl* fiber = inbox_.pop(); fiber != nullptr) return fiber;
  if (FiberControl* fiber = pick(); fiber != nullptr) return fiber;
  FiberControl* const fiber = scheduler_->inbox.pop();
  if (fiber == nullptr) return nullptr;
  bool moved = false;
  for (int i = 0; i < 32; ++i) {  // take the overflow back in batches
    FiberControl* more = scheduler_->inbox.pop();
    if (more == nullptr) break;
    push(more);
    moved = true;
  }
  // Between the two queues a fiber is invisible to workers that look for work before they sleep.
  if (moved) scheduler_->notify();
  return fiber;
}

void Worker::trim_if_asked() noexcept {
  if (!trim_.load(std::memory_order_relaxed)) [[likely]]
    return;
  trim_.store(false, std::memory_order_relaxed);
  stacks_.trim(scheduler_->stacks);
}

// cool_down frees half of the hot stacks left over from a peak, when idle and at most once a second. Under load,
// mapping them again costs some microseconds a second.
void Worker::cool_down(std::int64_t now_ns) noexcept {
  if (now_ns - cooled_at_ns_ < kCoolNs) return;
  cooled_at_ns_ = now_ns;
  stacks_.halve(scheduler_->stacks);
}

// maintain is the look around that a busy worker takes every kTurn switches.
void Worker::maintain() noexcept {
  tick_ = tick_now();
  trim_if_asked();
  if constexpr (!kManyWorkers) scheduler_->run_errands();
  scheduler_->fire_timers();
  if (scheduler_->reactor.in_use() && !scheduler_->polling_.exchange(true, std::memory_order_acquire)) {
    bump(counters.polls);
    scheduler_->reactor.poll(0);
    scheduler_->reactor.dispatch();
    scheduler_->polling_.store(false, std::memory_order_seq_cst);
    scheduler_->release_poller();
  }
  if (FiberControl* fiber = scheduler_->inbox.pop(); fiber != nullptr) {
    push(fiber);
    scheduler_->notify();  // as in find_work
  }
}

void Worker::resume(FiberControl* fiber) noexcept {
  fiber->worker = this;
  fiber->state.store(FiberControl::State::running, std::memory_order_relaxed);
  current_ = fiber;
  trace_run(this, fiber);
  bump(counters.switches);
  SanitizerContext::before_switch(&sanitizer_, fiber->sanitizer);
  void* const message = port::coir_switch(&loop_sp_, fiber->sp, nullptr);
  SanitizerContext::after_switch(sanitizer_);
  current_ = nullptr;
  commit(message);
}

}  // namespace coir
