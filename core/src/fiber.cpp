#include <coir/fiber.h>

#include <sched.h>

#include <bit>
#include <new>

#include <coir/nursery_base.h>

#include "join.h"
#include "owner.h"
#include "paint.h"
#include "park.h"

namespace coir {

namespace {

// take_ended waits out the few instructions between a fiber's last claim and the switch off its stack, on another
// worker. True: it has failed, nobody has taken the failure over, and the caller does now.
bool take_ended(FiberControl* fiber) noexcept {
  for (int spins = 0;; ++spins) {
    std::uint32_t join = fiber->join.load(std::memory_order_acquire);
    if (join == FiberControl::kDone) [[likely]]
      return false;
    // kLocked keeps its nursery away: that takes the failure over itself when it is left first.
    if (join == FiberControl::kFailed &&
        fiber->join.compare_exchange_strong(join, FiberControl::kLocked, std::memory_order_acq_rel,
                                            std::memory_order_relaxed)) {
      return true;
    }
    if (spins < 128) {
      Spinlock::relax();
    } else {
      sched_yield();
    }
  }
}

// report_failure gives a failure that nobody handled to the fiber's nursery.
void report_failure(const FiberControl* fiber) noexcept {
  if (fiber->nursery != nullptr) {
    fiber->nursery->fail(*fiber->failure);
  } else {
    fiber->worker->scheduler().fail(*fiber->failure);
  }
}

}  // namespace

bool open_to_waiting(FiberControl* fiber, Waiter* joiner) noexcept {
  fiber->joiner = joiner;
  std::uint32_t open = FiberControl::kOpen;
  // release publishes `joiner` to end_fiber.
  return fiber->join.compare_exchange_strong(open, FiberControl::kWaiting, std::memory_order_acq_rel,
                                             std::memory_order_acquire);
}

bool leave_joining(FiberControl* fiber) noexcept {
  std::uint32_t join = FiberControl::kWaiting;
  if (fiber->join.compare_exchange_strong(join, FiberControl::kOpen, std::memory_order_acq_rel,
                                          std::memory_order_acquire)) {
    return true;
  }
  while (fiber->join.load(std::memory_order_acquire) == FiberControl::kLocked) sched_yield();
  return false;
}

namespace {

// end_owned is what end_fiber does for a nursery's child and for one that failed. It returns, with the join word
// locked, when a joiner waits, who takes both over.
void end_owned(FiberControl* self, const Error* failure) noexcept {
  // To return `cancelled` when one is cancelled is no failure.
  self->failure = failure;
  self->fails = failure != nullptr && !(*failure == ErrorCode::cancelled && is_cancelled(self));
  std::uint32_t join = self->join.load(std::memory_order_acquire);
  for (;;) {
    if (join == FiberControl::kDetached) {
      if (self->fails) report_failure(self);
      if (self->drop != nullptr) self->drop(self->storage);
      FiberWorker::leave(self, Commit::owned, nullptr);
    }
    if (!self->join.compare_exchange_weak(join, FiberControl::kLocked, std::memory_order_acq_rel,
                                          std::memory_order_acquire)) {
      continue;
    }
    if (join != FiberControl::kWaiting) FiberWorker::leave(self, Commit::owned, nullptr);
    if (self->nursery != nullptr) self->nursery->take(self, true);
    return;
  }
}

// end_fiber is the last thing that runs on a fiber's stack.
//
// join:   kOpen    -> kLocked -> kDone       nobody waits yet; the stack stays until the handle asks
//                             -> kFailed     the same, and the nursery still has the failure to answer for
//         kFailed  -> kLocked -> kDone       the handle or the nursery takes the failure over, whoever is first
//         kWaiting -> kLocked -> kDone       the joiner is claimed, and goes on in this fiber's place when it is a
//                                            fiber
//         kDetached                          the stack goes back to the pool
// kDone is set from the far side of the switch, when nobody stands on the stack any more. Who meets kLocked waits for
// it.
[[noreturn]] void end_fiber(FiberControl* self, const Error* failure) noexcept {
  if (self->mutexes_held != 0) [[unlikely]]
    report_held_mutexes(*self);
  std::uint32_t join = FiberControl::kWaiting;
  if (self->nursery != nullptr || failure != nullptr) [[unlikely]] {
    end_owned(self, failure);
  } else {
    join = self->join.load(std::memory_order_acquire);
    for (;;) {
      if (join == FiberControl::kDetached) {
        if (self->drop != nullptr) self->drop(self->storage);
        FiberWorker::leave(self, Commit::ended, nullptr);
      }
      if (self->join.compare_exchange_weak(join, FiberControl::kLocked, std::memory_order_acq_rel,
                                           std::memory_order_acquire))
        break;
    }
  }
  FiberControl* heir = nullptr;
  if (join == FiberControl::kWaiting) {
    Waiter* const joiner = self->joiner;
    // Under kLocked the joiner cannot leave its wait; see Waiter.
    if (joiner->claim(WakeReason::joined) == Waiter::Claim::parked) {
      const Scheduler& scheduler = self->worker->scheduler();
      if (joiner->wakes_by(&wake_fiber) && !scheduler.migrate() && !scheduler.seeded()) {
        heir = static_cast<FiberControl*>(joiner);
      } else {
        joiner->wake();
      }
    }
  }
  FiberWorker::leave(self, Commit::handed_off, heir);
}

void fiber_main(void* message, void* argument) noexcept {
  auto* self = static_cast<FiberControl*>(argument);
  SanitizerContext::after_switch(self->sanitizer);
  self->worker->commit(message);
  const Error* const failure = self->run(self->storage);
  end_fiber(self, failure);
}

// class_for is the smallest class of at least `bytes`, or kStackClassCount and above for what none can hold.
std::size_t class_for(std::size_t bytes) noexcept {
  return static_cast<std::size_t>(std::bit_width((bytes - 1) >> 13));
}
static_assert(nominal_stack_bytes(0) == std::size_t{1} << 13);

struct Identity {
  std::uint64_t id;
  std::uint64_t parent_id;
  FiberWorker* worker;
  detail::NurseryBase* nursery;
};

// lay_out sets every field of a slot and its first frame.
inline void lay_out(FiberControl* control, const Identity& identity, const SpawnOptions& options,
                    const detail::Code& code, std::source_location where) noexcept {
  control->reset(&wake_fiber, identity.id);
  control->worker = identity.worker;
  control->id.store(identity.id, std::memory_order_relaxed);
  control->cancelled_id.store(0, std::memory_order_relaxed);
  control->wait_kind.store(WaitKind::nothing, std::memory_order_relaxed);
  control->join.store(FiberControl::kOpen, std::memory_order_relaxed);
  control->run = code.run;
  control->drop = code.drop;
  control->parent_id.store(identity.parent_id, std::memory_order_relaxed);
  control->mutexes_held = 0;
  control->name.store(options.name, std::memory_order_relaxed);
  control->where.store(where, std::memory_order_relaxed);
  control->nursery = identity.nursery;
  control->ambient = identity.nursery != nullptr ? &identity.nursery->scope() : nullptr;
  control->ticket = identity.id;
  control->failure = nullptr;
  const std::size_t stack_bytes = nominal_stack_bytes(control->stack_class) * kStackInflation;
  control->sanitizer.fiber_stack(StackArena::low_end(control, stack_bytes), stack_bytes - sizeof(FiberControl));
  control->storage = detail::storage_of(control, code.bytes);
  control->sp = port::make_context(control->storage, &fiber_main, control);
  paint_stack(control);
}

// prepare_outside serves plain threads, which have no pool of their own.
detail::Launch prepare_outside(detail::NurseryBase* nursery, const SpawnOptions& options, const detail::Code& code,
                               std::source_location where) noexcept {
  Scheduler* const scheduler = Scheduler::current();
  if (scheduler == nullptr || !scheduler->takes_outsiders()) return detail::Launch::failed(ErrorCode::unsupported);
  const std::size_t stack_class = class_for(options.stack != 0 ? options.stack : scheduler->default_stack());
  if (stack_class >= kStackClassCount || code.bytes > nominal_stack_bytes(stack_class) / 2) {
    return detail::Launch::failed(ErrorCode::invalid);
  }
  Error error{};
  FiberControl* const control = scheduler->stacks.arena(stack_class).acquire(error);
  if (control == nullptr) return detail::Launch::failed(error.code);
  const std::uint64_t id = Scheduler::id_block();
  lay_out(control, {.id = id, .parent_id = 0, .worker = &scheduler->worker(0), .nursery = nursery}, options, code,
          where);
  trace_spawned(nullptr, control);
  return {control, id};
}

[[gnu::always_inline]] inline detail::Launch prepare_on(FiberWorker* worker, detail::NurseryBase* nursery,
                                                        const SpawnOptions& options, const detail::Code& code,
                                                        std::source_location where) noexcept {
  Scheduler& scheduler = worker->scheduler();
  const std::size_t stack_class = class_for(options.stack != 0 ? options.stack : scheduler.default_stack());
  if (stack_class >= kStackClassCount || code.bytes > nominal_stack_bytes(stack_class) / 2) [[unlikely]] {
    return detail::Launch::failed(ErrorCode::invalid);
  }
  Error error{};
  FiberControl* const control = worker->stacks().acquire(scheduler.stacks, stack_class, error);
  if (control == nullptr) [[unlikely]]
    return detail::Launch::failed(error.code);
  const FiberControl* const parent = worker->current();
  const std::uint64_t id = worker->next_id();
  bump(worker->counters.spawned);
  lay_out(control,
          {.id = id,
           .parent_id = parent != nullptr ? parent->id.load(std::memory_order_relaxed) : 0,
           .worker = worker,
           .nursery = nursery},
          options, code, where);
  trace_spawned(worker, control);
  return {control, id};
}

}  // namespace

namespace detail {

Launch prepare(CurrentHome, const SpawnOptions& options, const Code& code, std::source_location where) noexcept {
  FiberWorker* const worker = this_worker();
  const Scope* const scope = worker != nullptr && worker->current() != nullptr ? worker->current()->ambient : ambient();
  if (scope != nullptr && scope->nursery != nullptr && !options.detached) [[unlikely]]
    return prepare(NamedHome{scope->nursery, true}, options, code, where);
  if (worker == nullptr) [[unlikely]]
    return prepare_outside(nullptr, options, code, where);
  return prepare_on(worker, nullptr, options, code, where);
}

Launch prepare(NamedHome home, const SpawnOptions& options, const Code& code, std::source_location where) noexcept {
  if (options.detached) return prepare(CurrentHome{}, options, code, where);
  if (auto admitted = home.nursery->admit(home.wait); !admitted) return Launch::failed(admitted.error().code);
  // The wait may have moved the caller to another worker.
  FiberWorker* const worker = this_worker();
  const Launch made = worker != nullptr ? prepare_on(worker, home.nursery, options, code, where)
                                        : prepare_outside(home.nursery, options, code, where);
  if (made.control != nullptr) {
    home.nursery->link(made.control);
  } else {
    home.nursery->dismiss();
  }
  return made;
}

void launch(FiberControl* control) noexcept {
  control->state.store(FiberControl::State::runnable, std::memory_order_relaxed);
  FiberWorker* const worker = this_worker();
  if (worker == nullptr) return Scheduler::current()->inject_new(control);
  Scheduler& scheduler = worker->scheduler();
  if (scheduler.migrate()) [[unlikely]]
    return scheduler.hand_to((worker->index() + 1) % scheduler.worker_count(), control);
  worker->push(control);
  scheduler.notify();
}

}  // namespace detail

namespace detail {

FiberControl* cancel_claim(FiberControl* fiber, std::uint64_t id, const char* reason) noexcept {
  std::uint64_t seen = fiber->cancelled_id.load(std::memory_order_seq_cst);
  // Before the mark, so that whoever sees that finds a reason of this life. Of two that cancel at a time, either's.
  if (seen != id && fiber->id.load(std::memory_order_acquire) == id)
    fiber->cancel_reason.store(reason, std::memory_order_release);
  do {
    if (fiber->id.load(std::memory_order_acquire) != id) return nullptr;
    // seq_cst pairs with Waiter::commit. A mark that meets another fiber, for this one has just ended, bears the wrong
    // id and means nothing there.
  } while (seen != id && !fiber->cancelled_id.compare_exchange_weak(seen, id, std::memory_order_seq_cst));
  return fiber->claim_ticket(WakeReason::cancelled, id) == Waiter::Claim::parked ? fiber : nullptr;
}

}  // namespace detail

std::expected<void, Error> FiberRef::cancel(const char* reason) const noexcept {
  if (!alive()) return std::unexpected(Error{ErrorCode::stale});
  const OutsideClaim outside;
  if (FiberControl* const parked = detail::cancel_claim(control_, id_, reason); parked != nullptr) parked->wake();
  return {};
}

bool FiberRef::alive() const noexcept {
  if (control_ == nullptr || control_->id.load(std::memory_order_acquire) != id_) return false;
  const std::uint32_t join = control_->join.load(std::memory_order_acquire);
  return join != FiberControl::kLocked && join != FiberControl::kDone && join != FiberControl::kFailed;
}

bool Fiber::done() const noexcept {
  return control_ != nullptr && !alive();
}

FiberStatus Fiber::status() const noexcept {
  if (control_ == nullptr || control_->id.load(std::memory_order_acquire) != id_) return FiberStatus::empty;
  if (alive()) {
    return control_->cancelled_id.load(std::memory_order_relaxed) == id_ ? FiberStatus::cancelling
                                                                         : FiberStatus::running;
  }
  // alive acquired the join word, before which end_owned wrote this.
  return control_->failure != nullptr ? FiberStatus::failed : FiberStatus::succeeded;
}

std::expected<void, Error> Fiber::wait_ended(Deadline deadline) noexcept {
  FiberControl* const fiber = control_;
  if (fiber == nullptr) return std::unexpected(failure_);
  if (fiber->id.load(std::memory_order_acquire) != id_) return std::unexpected(Error{ErrorCode::stale});
  const std::uint32_t join = fiber->join.load(std::memory_order_acquire);
  if (join == FiberControl::kWaiting) return std::unexpected(Error{ErrorCode::busy});
  WakeReason reason = WakeReason::joined;
  if (join == FiberControl::kOpen) {
    if (FiberControl* const self = running_fiber(); self != nullptr) [[likely]] {
      if (is_cancelled(self)) return std::unexpected(error_of(WakeReason::cancelled));
      arm(self);
      if (open_to_waiting(fiber, self)) reason = park(self, WaitKind::join, static_cast<std::int64_t>(id_), deadline);
    } else {
      if (this_worker() != nullptr || !kManyWorkers) return std::unexpected(Error{ErrorCode::unsupported});
      ThreadWaiter thread;
      thread.arm();
      if (open_to_waiting(fiber, &thread)) reason = thread.park(deadline);
    }
    std::uint32_t waiting = FiberControl::kWaiting;
    if (reason != WakeReason::joined &&
        fiber->join.compare_exchange_strong(waiting, FiberControl::kOpen, std::memory_order_acq_rel,
                                            std::memory_order_acquire)) {
      return std::unexpected(error_of(reason));
    }
  }
  if (take_ended(fiber)) [[unlikely]] {
    if (fiber->nursery != nullptr) fiber->nursery->take(fiber, false);
  }
  return {};
}

[[gnu::flatten]] std::expected<void, Error> Fiber::join(Deadline deadline) noexcept {
  if (auto ended = wait_ended(deadline); !ended) return ended;
  std::expected<void, Error> outcome;
  if (control_->failure != nullptr) [[unlikely]]
    outcome = std::unexpected(*control_->failure);
  if (control_->drop != nullptr) control_->drop(control_->storage);
  release();
  return outcome;
}

void Fiber::abandon() noexcept {
  FiberControl* const fiber = control_;
  if (fiber == nullptr) return;
  if (fiber->id.load(std::memory_order_acquire) != id_) {  // a handle that outlived its run
    control_ = nullptr;
    return;
  }
  std::uint32_t join = FiberControl::kOpen;
  if (fiber->join.compare_exchange_strong(join, FiberControl::kDetached, std::memory_order_acq_rel,
                                          std::memory_order_acquire)) {
    control_ = nullptr;
    id_ = 0;
    return;
  }
  if (take_ended(fiber)) {
    if (fiber->nursery != nullptr) {
      fiber->nursery->drop_failed(fiber);
    } else {
      report_failure(fiber);
    }
  }
  if (fiber->drop != nullptr) fiber->drop(fiber->storage);
  release();
}

void* Fiber::storage() const noexcept {
  return control_->storage;
}

// release hands an ended fiber's stack to the pool of whoever joined it.
void Fiber::release() noexcept {
  FiberControl* const fiber = std::exchange(control_, nullptr);
  id_ = 0;
  failure_ = {ErrorCode::stale};
  fiber->id.store(0, std::memory_order_release);
  fiber->state.store(FiberControl::State::free, std::memory_order_relaxed);
  Scheduler* const scheduler = Scheduler::current();
  if (FiberWorker* const worker = this_worker(); worker != nullptr) {
    worker->stacks().release(scheduler->stacks, fiber);
  } else {
    scheduler->stacks.arena(fiber->stack_class).cool(fiber);
  }
}

FiberRef current() noexcept {
  FiberControl* const self = running_fiber();
  return self == nullptr ? FiberRef() : FiberRef(self, self->id.load(std::memory_order_relaxed));
}

void yield() noexcept {
  if (FiberControl* const self = running_fiber(); self != nullptr) {
    FiberWorker::yield(self);
  } else {
    sched_yield();
  }
}

std::expected<void, Error> sleep(std::chrono::nanoseconds span) noexcept {
  return sleep_until(Deadline::after(span));
}

std::expected<void, Error> sleep_until(Deadline deadline) noexcept {
  FiberControl* const self = running_fiber();
  if (self == nullptr) {
    if (deadline.is_never() && ambient() == nullptr) return std::unexpected(Error{ErrorCode::invalid});
    ThreadWaiter thread;
    thread.arm();
    const Error error = error_of(thread.park(deadline));
    if (error == ErrorCode::timed_out && error.scope == 0) return {};
    return std::unexpected(error);
  }
  if (is_cancelled(self)) return std::unexpected(error_of(WakeReason::cancelled));
  arm(self);
  const WakeReason reason = park(self, WaitKind::sleep, deadline.ns(), deadline);
  if (reason != WakeReason::timed_out || late_scope(self) != 0) return std::unexpected(error_of(reason));
  return {};
}

}  // namespace coir
