#include <coir/config.h>
#include <coir/isolate.h>

#include <coir/fiber.h>
#include <coir/ledger.h>
#include <coir/pressure.h>
#include <coir/runtime.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>

#include <algorithm>
#include <new>
#include <span>

#include <coir/port/memory.h>
#include <coir/port/seccomp.h>

#include "base/thread.h"
#include "isolate/isolated_run.h"
#include "isolate/message_queue.h"
#include "memory/heap.h"
#include "wait/park.h"

namespace coir::detail {

namespace {

constexpr std::size_t kMostQueueBytes = std::size_t{1} << 30;

std::size_t aligned(std::size_t bytes) noexcept {
  return (bytes + MessageQueue::kAlignment - 1) & ~(MessageQueue::kAlignment - 1);
}

}  // namespace

// IsolateCore is the memory that owner and isolate share, in one piece: itself, the closure, and three queues, the
// third for the result. The owner frees it once the thread has ended.
class alignas(MessageQueue::kAlignment) IsolateCore {
 public:
  struct Plan {
    std::size_t closure_bytes, queue_bytes, result_bytes;
    std::size_t all() const noexcept { return sizeof(IsolateCore) + closure_bytes + 2 * queue_bytes + result_bytes; }
  };

  IsolateCore(const IsolateBody& body, const IsolateOptions& options, const Plan& plan) noexcept
      : to_isolate(lock, {rings(plan), plan.queue_bytes}),
        to_owner(lock, {rings(plan) + plan.queue_bytes, plan.queue_bytes}),
        outcome(lock, {rings(plan) + 2 * plan.queue_bytes, plan.result_bytes}),
        options_(options),
        run_(body.run),
        bytes_(plan.all()) {
    std::memcpy(closure(), body.closure, body.closure_bytes);
  }

  std::expected<void, Error> start() noexcept;
  void cancel(const char* reason) noexcept;
  // acquire pairs with the release in cancel, before which the reason was written.
  bool cancelled() const noexcept { return cancelled_.load(std::memory_order_acquire); }
  const char* cancel_reason() const noexcept { return cancelled() ? reason_ : nullptr; }
  // status is called under the lock.
  FiberStatus status() const noexcept;
  // failure is the error that await returns, once `outcome` is closed.
  Error failure() const noexcept { return failure_; }
  void join() noexcept { pthread_join(thread_, nullptr); }
  std::size_t bytes() const noexcept { return bytes_; }

  MessageQueue& from(IsolateSide side) noexcept { return side == IsolateSide::owner ? to_isolate : to_owner; }
  MessageQueue& to(IsolateSide side) noexcept { return side == IsolateSide::owner ? to_owner : to_isolate; }
  const SharedAtomic<bool>* stop(IsolateSide side) const noexcept {
    return side == IsolateSide::isolate ? &cancelled_ : nullptr;
  }

  InterRunLock lock;
  MessageQueue to_isolate, to_owner, outcome;

 private:
  enum class State : std::uint8_t { starting, running, refused };

  std::byte* rings(const Plan& plan) noexcept { return reinterpret_cast<std::byte*>(this + 1) + plan.closure_bytes; }
  void* closure() noexcept { return this + 1; }
  static void* thread_main(void* core) noexcept;
  std::expected<void, Error> deny() const noexcept;
  std::expected<void, Error> run() noexcept;
  void show(State state, Scheduler* scheduler) noexcept;

  IsolateOptions options_;
  Error (*run_)(void* closure, IsolateCore& core);
  std::size_t bytes_;
  pthread_t thread_{};
  SharedAtomic<bool> cancelled_{false};  // set under the lock; crosses threads in single-worker builds too
  const char* reason_ = nullptr;         // for the cancellation; written once, before cancelled_

  // Under the lock.
  InterRunQueue started_;
  State state_ = State::starting;
  Scheduler* scheduler_ = nullptr;  // while it runs
  Error failure_;
};

// start starts the thread and waits until the thread has told whether f will run.
std::expected<void, Error> IsolateCore::start() noexcept {
  const int error = start_thread(thread_, kWorkerThreadBytes, all_but_faults(), &thread_main, this);
  if (error != 0) return std::unexpected(Error{ErrorCode::no_memory, error});
  {
    const InterRunGuard hold(lock);
    while (state_ == State::starting) {
      if (started_.wait(lock, WaitKind::blocking, Deadline::never(), Shielded::yes)) continue;
      lock.unlock();  // no descriptor is left to wait with: look again until the thread has started
      sched_yield();
      lock.lock();
    }
    if (state_ == State::running) return {};
  }
  join();
  return std::unexpected(failure_);
}

void* IsolateCore::thread_main(void* core) noexcept {
  auto& self = *static_cast<IsolateCore*>(core);
  std::expected<void, Error> ended = self.deny();
  if (ended) ended = self.run();
  enter_heap();
  const InterRunGuard hold(self.lock);
  if (!ended) self.failure_ = ended.error();
  self.to_isolate.close();
  self.to_owner.close();
  self.outcome.close();
  if (self.state_ == State::starting) {
    self.state_ = State::refused;
    self.started_.wake_all();
  }
  return nullptr;
}

std::expected<void, Error> IsolateCore::deny() const noexcept {
  if (options_.deny == Deny::nothing) return {};
  const int error = port::deny_system_calls({.net = denies(options_.deny, Deny::net),
                                             .fs = denies(options_.deny, Deny::fs),
                                             .process = denies(options_.deny, Deny::process),
                                             .isolates = denies(options_.deny, Deny::isolates)});
  if (error == 0) return {};
  return std::unexpected(Error{ErrorCode::unsupported, error});
}

void IsolateCore::show(State state, Scheduler* scheduler) noexcept {
  const InterRunGuard hold(lock);
  state_ = state;
  scheduler_ = scheduler;
  started_.wake_all();
}

std::expected<void, Error> IsolateCore::run() noexcept {
  const auto body = [this]() -> std::expected<void, Error> {
    if (const Error error = run_(closure(), *this); error.code != ErrorCode{}) return std::unexpected(error);
    return {};
  };
#if COIR_SINGLE_WORKER
  show(State::running, nullptr);
  return body();
#else
  void* const place = port::reserve(sizeof(IsolatedRun));
  if (place == nullptr) return std::unexpected(Error{ErrorCode::no_memory});
  auto* const isolated = new (place) IsolatedRun;
  std::expected<void, Error> ended = isolated->start();
  if (ended) {
    Task<void> first = spawn({.name = options_.name, .stack = options_.stack}, body);
    if (first.started()) {
      first.detach();
      show(State::running, &isolated->scheduler);
      ended = isolated->scheduler.run();
      show(State::running, nullptr);
    } else {
      ended = first.await();
    }
    isolated->finish();
  }
  port::release(place, sizeof(IsolatedRun));
  return ended;
#endif
}

void IsolateCore::cancel(const char* reason) noexcept {
  const InterRunGuard hold(lock);
  if (!cancelled_.load(std::memory_order_relaxed)) reason_ = reason;
  cancelled_.store(true, std::memory_order_release);
  to_isolate.wake_waiters();
  to_owner.wake_waiters();
  if (kManyWorkers && scheduler_ != nullptr) scheduler_->cancel_from_outside(reason_);
}

FiberStatus IsolateCore::status() const noexcept {
  if (outcome.closed()) return failure_.code == ErrorCode{} ? FiberStatus::succeeded : FiberStatus::failed;
  return cancelled() ? FiberStatus::cancelling : FiberStatus::running;
}

std::expected<IsolateCore*, Error> start_isolate(const IsolateBody& body, const IsolateOptions& options) noexcept {
  if (this_worker() != nullptr && running_fiber() == nullptr) return std::unexpected(Error{ErrorCode::unsupported});
  if (port::isolates_denied()) return std::unexpected(Error{ErrorCode::system, EPERM});
  if (options.queue_bytes > kMostQueueBytes) return std::unexpected(Error{ErrorCode::limit});
  IsolateCore::Plan plan{aligned(body.closure_bytes), aligned(options.queue_bytes), 0};
  if (body.result_bytes == SIZE_MAX) {
    plan.result_bytes = plan.queue_bytes;
  } else if (body.result_bytes != 0) {
    plan.result_bytes = MessageQueue::room_for(body.result_bytes);
  }
  Error error{ErrorCode::limit};
  if (Pressure::charge(account::channels, plan.all())) {
    if (Pressure::charge(account::stacks, kWorkerThreadBytes)) {
      error = {ErrorCode::no_memory};
      if (void* const memory = malloc(plan.all()); memory != nullptr) {
        auto* const core = new (memory) IsolateCore(body, options, plan);
        auto started = core->start();
        if (started) return core;
        error = started.error();
        core->~IsolateCore();
        free(memory);
      }
      account::stacks.refund(kWorkerThreadBytes);
    }
    account::channels.refund(plan.all());
  }
  return std::unexpected(error);
}

void end_isolate(IsolateCore* core) noexcept {
  {
    const InterRunGuard hold(core->lock);
    core->to_isolate.close();
    core->to_owner.close();
  }
  core->cancel(nullptr);
  // If the caller cannot wait, join blocks.
  static_cast<void>(core->outcome.await_close(Deadline::never(), Shielded::yes));
  core->join();
  enter_heap();
  const std::size_t bytes = core->bytes();
  core->~IsolateCore();
  free(core);
  account::stacks.refund(kWorkerThreadBytes);
  account::channels.refund(bytes);
}

std::expected<void, Error> send_message(IsolateCore& core, IsolateSide from, const MessageType& type,
                                        const void* message, Deadline deadline) noexcept {
  return core.from(from).send(type, message, deadline, core.stop(from));
}

std::expected<void, Error> receive_message(IsolateCore& core, IsolateSide by, const MessageType& type, void* into,
                                           Deadline deadline) noexcept {
  return core.to(by).receive(type, into, deadline, core.stop(by));
}

void close_messages(IsolateCore& core, IsolateSide from) noexcept {
  const InterRunGuard hold(core.lock);
  core.from(from).close();
}

void cancel_isolate(IsolateCore& core, const char* reason) noexcept {
  core.cancel(reason);
}

bool isolate_cancelled(const IsolateCore& core) noexcept {
  return core.cancelled();
}

const char* isolate_cancel_reason(const IsolateCore& core) noexcept {
  return core.cancel_reason();
}

FiberStatus isolate_status(IsolateCore& core) noexcept {
  const InterRunGuard hold(core.lock);
  return core.status();
}

std::expected<void, Error> keep_result(IsolateCore& core, const MessageType& type, const void* result) noexcept {
  return core.outcome.send(type, result, Deadline::now());
}

// A result may lie in the queue before the isolate has ended: wait for the end, whose failure comes before the result.
std::expected<void, Error> take_result(IsolateCore& core, const MessageType* type, void* into,
                                       Deadline deadline) noexcept {
  if (auto ended = core.outcome.await_close(deadline); !ended) return ended;
  enter_heap();
  if (core.failure().code != ErrorCode{}) return std::unexpected(core.failure());
  if (type == nullptr) return {};
  auto taken = core.outcome.receive(*type, into, Deadline::now());
  if (!taken && taken.error() == ErrorCode::closed) return std::unexpected(Error{ErrorCode::stale});
  return taken;
}

}  // namespace coir::detail
