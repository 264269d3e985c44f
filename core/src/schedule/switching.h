#pragma once

#include <coir/port/spinning.h>

#include "fiber/paint.h"
#include "schedule/scheduler.h"
#include "schedule/trace.h"
#include "schedule/worker.h"

namespace coir {

// The hot path of the runtime: from a fiber straight to the next.

inline void* message_of(FiberControl* fiber, Commit deed) noexcept {
  return reinterpret_cast<char*>(fiber) + static_cast<std::uintptr_t>(deed);
}

inline void Worker::push(FiberControl* fiber) noexcept {
  queue_.push(fiber, scheduler_->inbox);
}

inline std::uint64_t Worker::next_id() noexcept {
  if (next_id_ == last_id_) [[unlikely]] {
    next_id_ = Scheduler::id_block();
    last_id_ = next_id_ + Scheduler::kIdBlock;
  }
  return next_id_++;
}

// commit handles inline the two cases that every join waits for; carry_out handles the others.
[[gnu::always_inline]] inline void Worker::commit(void* message) noexcept {
  if (message == nullptr) return;
  const auto bits = reinterpret_cast<std::uintptr_t>(message);
  constexpr auto mask = static_cast<std::uintptr_t>(Commit::mask);
  const auto deed = static_cast<Commit>(bits & mask);
  if (deed != Commit::handed_off && deed != Commit::taken) return carry_out(message);
  auto* fiber = reinterpret_cast<FiberControl*>(bits & ~mask);
  bump(counters.ended);
  note_stack_use(fiber);
  fiber->sanitizer.ended();
  // release pairs with the joiner's acquire: the result is complete and the stack is left.
  fiber->join.store(deed == Commit::taken ? FiberControl::kTaken : FiberControl::kDone, std::memory_order_release);
}

// pick is the next fiber in line here; null when there is none or it is time to look around.
[[gnu::always_inline]] inline FiberControl* Worker::pick() noexcept {
  if (--turn_ == 0) [[unlikely]]
    return nullptr;
  if (woken_.peek() != nullptr) {
    FiberControl* const fiber = woken_.exchange(nullptr);
    if (fiber != nullptr) {
      if (jumps_ < kJumpLimit) {
        ++jumps_;
        return fiber;
      }
      queue_.push(fiber, scheduler_->inbox);
    }
  }
  jumps_ = 0;
  if (seeded_) [[unlikely]]
    return queue_.take_nth(random() % 8);
  return queue_.pop();
}

// switch_from leaves a fiber. It and its callers are inlined up to the public call: the processor mispredicts a return
// from a frame that another fiber's calls have pushed out of its return stack, which costs more than the switch.
[[gnu::always_inline]] inline void Worker::switch_from(FiberControl* self, Worker& worker, FiberControl* next,
                                                       void* message) noexcept {
  port::expect_no_spinlock("a switch");
  void* target;
  trace_left(&worker, self);
  const bool for_good = (reinterpret_cast<std::uintptr_t>(message) & static_cast<std::uintptr_t>(Commit::mask)) >=
                        static_cast<std::uintptr_t>(Commit::ended);
  SanitizerContext* const from = for_good ? nullptr : &self->sanitizer;
  // Do this before telling the sanitizer of the switch: afterwards an ending fiber's fake stack is gone, and code
  // inlined here may keep variables on it.
  worker.current_ = next;
  bump(worker.counters.switches);
  if (next != nullptr) [[likely]] {
    next->worker = &worker;
    next->state.store(FiberControl::State::running, std::memory_order_relaxed);
    trace_run(&worker, next);
    target = next->sp;
    SanitizerContext::before_switch(from, next->sanitizer);
  } else {
    target = worker.loop_sp_;
    SanitizerContext::before_switch(from, worker.sanitizer_);
  }
  message = port::coir_switch(&self->sp, target, message);
  // From here on `worker` may be another thread's.
  SanitizerContext::after_switch(self->sanitizer);
  self->worker->commit(message);
}

[[gnu::always_inline]] inline void Worker::suspend(FiberControl* self, Commit deed) noexcept {
  check_canary(self);
  Worker& worker = *self->worker;
  FiberControl* const next = worker.pick();
  if constexpr (!kManyWorkers) {
    if (next == self) return;  // woken before it was off its stack
    switch_from(self, worker, next, deed == Commit::parked ? nullptr : message_of(self, deed));
  } else {
    switch_from(self, worker, next, message_of(self, deed));
  }
}

[[gnu::always_inline]] inline void Worker::yield(FiberControl* self) noexcept {
  check_canary(self);
  Worker& worker = *self->worker;
  FiberControl* const next = worker.pick();
  if (next == nullptr && worker.turn_ != 0 && (!kManyWorkers || worker.scheduler_->inbox.empty())) return;
  self->state.store(FiberControl::State::runnable, std::memory_order_relaxed);
  if constexpr (!kManyWorkers) {
    worker.push(self);  // nobody takes it before it is off its stack
    switch_from(self, worker, next, nullptr);
  } else {
    switch_from(self, worker, next, message_of(self, Commit::yielded));
  }
}

[[gnu::always_inline]] inline void Worker::leave(FiberControl* self, Commit deed, FiberControl* joiner) noexcept {
  check_canary(self);
  Worker& worker = *self->worker;
  FiberControl* next = joiner;
  if (joiner == nullptr) {
    next = worker.pick();
  } else {
    trace_woken(&worker, joiner);
    if (worker.turn_ > 1) --worker.turn_;
  }
  self->state.store(FiberControl::State::ended, std::memory_order_relaxed);
  switch_from(self, worker, next, message_of(self, deed));
  __builtin_unreachable();
}

}  // namespace coir
