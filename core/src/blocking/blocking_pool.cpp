#include "blocking/blocking_pool.h"

#include <stdlib.h>

#include <new>

#include <coir/port/futex.h>

#include "base/thread.h"
#include "memory/heap.h"

namespace coir::detail {

namespace {

constexpr std::int64_t kIdleNs = 1'000'000'000;

}  // namespace

constinit BlockingPool g_blocking_pool;

BlockingPool* BlockingPool::make() noexcept {
  void* const memory = malloc(sizeof(BlockingPool));
  return memory == nullptr ? nullptr : new (memory) BlockingPool;
}

void BlockingPool::destroy() noexcept {
  this->~BlockingPool();
  free(this);
}

// retire ends idle threads at once, the others after their present call.
void BlockingPool::retire() noexcept {
  lock();
  closing_ = true;
  const std::size_t threads = threads_;
  arrivals_.fetch_add(1, std::memory_order_relaxed);
  for (std::size_t i = 0; i < idle_; ++i) port::futex_wake(arrivals_);
  unlock();
  if (threads == 0) destroy();
}

std::expected<void, Error> BlockingPool::enter(BlockingCall& call, Waiter* waiter, FiberControl* self) noexcept {
  if (self != nullptr) wakeup_.enter(self);
  if constexpr (!kManyWorkers) {
    refund_retired(this, 0);
    if (!relief_added_) Pressure::add(relief_);
    relief_added_ = true;
  }
  lock();
  bool charged = false;
  if (wants_thread(queue_.size() + 1, call.kind)) {
    // Making room calls reliefs, this pool's among them: not under the lock.
    unlock();
    charged = Pressure::charge(account::stacks, kBlockingThreadBytes);
    lock();
  }
  Error refused{ErrorCode::limit};
  if (charged && wants_thread(queue_.size() + 1, call.kind)) {
    charged = false;
    if (!start_thread()) {
      charged = true;
      refused = {ErrorCode::no_memory};
    }
  }
  const bool served = threads_ != 0;
  if (served) {
    call.waiter = waiter;
    call.state = BlockingCall::State::queued;
    queue_.push_back(call);
    // No further thread can be started; the running ones take it.
    if (idle_ == 0 && threads_ >= port::limits().blocking_threads && next() == nullptr)
      waited_.fetch_add(1, std::memory_order_relaxed);
    show_load();
    arrivals_.fetch_add(1, std::memory_order_relaxed);
  }
  unlock();
  if (charged) account::stacks.refund(kBlockingThreadBytes);
  if (!served) {
    leave(self);
    return std::unexpected(refused);
  }
  port::futex_wake(arrivals_);
  return {};
}

BlockingCall* BlockingPool::next() const noexcept {
  if (running_ < port::limits().blocking_threads) return queue_.front();
  for (BlockingCall* call = queue_.front(); call != nullptr; call = call->next) {
    if (running_of_[static_cast<std::size_t>(call->kind)] == 0) return call;
  }
  return nullptr;
}

void BlockingPool::show_load() noexcept {
  shown_running_.store(static_cast<std::uint32_t>(running_), std::memory_order_relaxed);
  shown_waiting_.store(static_cast<std::uint32_t>(queue_.size()), std::memory_order_relaxed);
}

bool BlockingPool::withdraw(BlockingCall& call) noexcept {
  switch (call.state) {
    case BlockingCall::State::queued:
      queue_.remove(call);
      show_load();
      return false;
    case BlockingCall::State::running:
      call.seat->call_ = nullptr;
      return false;
    case BlockingCall::State::listed:
      listed_.remove(call);
      return true;
    case BlockingCall::State::done:
      return true;
  }
  return true;
}

// finish wakes the caller if it still waits, and unlocks.
void BlockingPool::finish(BlockingSeat& seat) noexcept {
  if (BlockingCall* const call = std::exchange(seat.call_, nullptr); call != nullptr) {
    if constexpr (kManyWorkers) {
      call->state = BlockingCall::State::done;
      call->waiter->claim_and_wake(WakeReason::ready);
    } else {
      call->state = BlockingCall::State::listed;
      listed_.push_back(*call);
      wakeup_.ring();
    }
  }
  unlock();
}

// answer runs on the only worker after a ring.
void BlockingPool::answer() noexcept {
  g_blocking_pool.lock();
  while (BlockingCall* const call = g_blocking_pool.listed_.front()) {
    g_blocking_pool.listed_.remove(*call);
    call->state = BlockingCall::State::done;
    call->waiter->claim_and_wake(WakeReason::ready);
  }
  g_blocking_pool.unlock();
}

bool BlockingPool::start_thread() noexcept {
  pthread_t thread;
  if (coir::start_thread(thread, kBlockingThreadBytes, all_but_faults(), &thread_main, this) != 0) return false;
  pthread_detach(thread);
  ++threads_;
  return true;
}

void* BlockingPool::thread_main(void* pool) noexcept {
  static_cast<BlockingPool*>(pool)->serve();
  return nullptr;
}

void BlockingPool::serve() noexcept {
  BlockingSeat seat(*this);
  lock();
  std::int64_t until = monotonic_ns() + kIdleNs;
  for (;;) {
    if (BlockingCall* const call = next(); call != nullptr) {
      const auto kind = static_cast<std::size_t>(call->kind);
      queue_.remove(*call);
      ++running_;
      ++running_of_[kind];
      show_load();
      call->state = BlockingCall::State::running;
      call->seat = &seat;
      seat.call_ = call;
      call->run(*call, seat);  // unlocks
      enter_heap();            // of a result that nobody waited for
      lock();
      --running_;
      --running_of_[kind];
      show_load();
      until = monotonic_ns() + kIdleNs;
      continue;
    }
    const std::int64_t left = until - monotonic_ns();
    if (left <= 0 || closing_) break;
    const std::uint32_t seen = arrivals_.load(std::memory_order_relaxed);
    ++idle_;
    unlock();
    port::futex_wait(arrivals_, seen, left);
    lock();
    --idle_;
  }
  const bool last = --threads_ == 0 && closing_;
  if constexpr (!kManyWorkers) ++retired_;
  unlock();
  if (last) destroy();
  if constexpr (kManyWorkers) account::stacks.refund(kBlockingThreadBytes);
}

// refund_retired runs on the only worker.
std::size_t BlockingPool::refund_retired(void* pool, std::size_t) noexcept {
  auto& self = *static_cast<BlockingPool*>(pool);
  self.lock();
  const std::size_t bytes = std::exchange(self.retired_, 0) * kBlockingThreadBytes;
  self.unlock();
  if (bytes != 0) account::stacks.refund(bytes);
  return bytes;
}

void BlockingSeat::begin() noexcept {
  pool_.unlock();
}

bool BlockingSeat::end() noexcept {
  enter_heap();
  pool_.lock();
  return call_ != nullptr;
}

void BlockingSeat::finish() noexcept {
  pool_.finish(*this);
}

}  // namespace coir::detail
