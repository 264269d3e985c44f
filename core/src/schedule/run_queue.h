#pragma once

#include <cstdint>

#include <coir/config.h>
#include <coir/detail/intrusive_list.h>
#include <coir/spinlock.h>

#include "fiber/control.h"

namespace coir {

// FiberList is an unbounded FIFO of fibers. Not synchronised.
class FiberList {
 public:
  bool empty() const noexcept { return fibers_.empty(); }
  void push(FiberControl* fiber) noexcept { fibers_.push(*fiber); }
  FiberControl* pop() noexcept { return fibers_.pop(); }

  // take_nth removes the n-th from the head, or the last; the seeded schedule uses it. Linear.
  FiberControl* take_nth(std::uint32_t n) noexcept {
    FiberControl* const first = fibers_.front();
    if (first == nullptr || n == 0 || first->next == nullptr) return fibers_.pop();
    FiberControl* before = first;
    for (; n > 1 && before->next->next != nullptr; --n) before = before->next;
    return fibers_.pop_after(*before);
  }

 private:
  detail::IntrusiveQueue<FiberControl> fibers_;
};

// Inbox is a FiberList that any thread may push to. `size` may be read without the lock, to find it empty.
class Inbox {
 public:
  void push(FiberControl* fiber) noexcept {
    Locked hold(lock_);
    append(fiber);
  }

  // push_counted pushes and counts in one step: a thread that pops the fiber, or reads the count, sees both.
  void push_counted(FiberControl* fiber, Atomic<std::uint64_t>& count) noexcept {
    Locked hold(lock_);
    append(fiber);
    count.fetch_add(1, std::memory_order_release);
  }

  FiberControl* pop() noexcept {
    if (empty()) return nullptr;
    Locked hold(lock_);
    FiberControl* fiber = list_.pop();
    if (fiber != nullptr) size_.store(size_.load(std::memory_order_relaxed) - 1, std::memory_order_release);
    return fiber;
  }

  bool empty() const noexcept { return size_.load(std::memory_order_seq_cst) == 0; }

 private:
  // append adds under the lock.
  void append(FiberControl* fiber) noexcept {
    list_.push(fiber);
    size_.store(size_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  Spinlock lock_;
  FiberList list_;
  Atomic<std::uint32_t> size_{0};
};

#if COIR_SINGLE_WORKER
// RunQueue of the only worker: a plain FIFO.
class RunQueue {
 public:
  void push(FiberControl* fiber, Inbox&) noexcept { list_.push(fiber); }
  FiberControl* pop() noexcept { return list_.pop(); }
  FiberControl* take_nth(std::uint32_t n) noexcept { return list_.take_nth(n); }
  bool empty() const noexcept { return list_.empty(); }

 private:
  FiberList list_;
};
#else
// RunQueue is a bounded ring with one owner and many thieves, after the run queue of Go's scheduler (runtime/proc.go,
// runqput, runqget, runqgrab). The owner pushes at the tail and takes from the head, so that yield is round-robin; a
// thief takes half from the head; a full ring spills to the overflow inbox.
//
// Invariant: slots in [head, tail) hold fibers; only the owner writes tail and slots; a thread that moves head by CAS
// owns the slots that it passed. head and tail run freely and wrap.
class RunQueue {
 public:
  // push appends. Owner only.
  void push(FiberControl* fiber, Inbox& overflow) noexcept {
    const std::uint32_t tail = tail_.load(std::memory_order_relaxed);
    // acquire pairs with the thieves' CAS: a slot is overwritten only after the thief has read it.
    const std::uint32_t head = head_.load(std::memory_order_acquire);
    if (tail - head == kSlots) [[unlikely]]
      return spill(fiber, overflow);
    slots_[tail % kSlots].store(fiber, std::memory_order_relaxed);
    // release pairs with the acquire of tail in steal_into.
    tail_.store(tail + 1, std::memory_order_release);
  }

  // pop takes the oldest. Owner only.
  FiberControl* pop() noexcept {
    std::uint32_t head = head_.load(std::memory_order_acquire);
    for (;;) {
      if (head == tail_.load(std::memory_order_relaxed)) return nullptr;
      FiberControl* fiber = slots_[head % kSlots].load(std::memory_order_relaxed);
      if (head_.compare_exchange_weak(head, head + 1, std::memory_order_acq_rel, std::memory_order_acquire))
        return fiber;
    }
  }

  // steal_into moves half of this queue, rounded up, to `thief`, which is empty and whose owner calls. Returns one of
  // them, to be run at once, or nullptr.
  FiberControl* steal_into(RunQueue& thief) noexcept {
    const std::uint32_t thief_tail = thief.tail_.load(std::memory_order_relaxed);
    std::uint32_t head = head_.load(std::memory_order_acquire);
    for (;;) {
      const std::uint32_t tail = tail_.load(std::memory_order_acquire);
      std::uint32_t count = tail - head;
      count -= count / 2;
      if (count == 0) return nullptr;
      if (count > kSlots / 2) {  // head and tail were read at different times
        head = head_.load(std::memory_order_acquire);
        continue;
      }
      for (std::uint32_t i = 0; i < count; ++i) {
        FiberControl* fiber = slots_[(head + i) % kSlots].load(std::memory_order_relaxed);
        thief.slots_[(thief_tail + i) % kSlots].store(fiber, std::memory_order_relaxed);
      }
      if (head_.compare_exchange_weak(head, head + count, std::memory_order_acq_rel, std::memory_order_acquire)) {
        FiberControl* fiber = thief.slots_[(thief_tail + count - 1) % kSlots].load(std::memory_order_relaxed);
        thief.tail_.store(thief_tail + count - 1, std::memory_order_release);
        return fiber;
      }
    }
  }

  // take_nth serves the seeded schedule, which runs one worker: there is no thief.
  FiberControl* take_nth(std::uint32_t n) noexcept {
    const std::uint32_t head = head_.load(std::memory_order_relaxed);
    const std::uint32_t count = tail_.load(std::memory_order_relaxed) - head;
    if (count == 0) return nullptr;
    auto& first = slots_[head % kSlots];
    auto& chosen = slots_[(head + n % count) % kSlots];
    FiberControl* fiber = chosen.load(std::memory_order_relaxed);
    chosen.store(first.load(std::memory_order_relaxed), std::memory_order_relaxed);
    head_.store(head + 1, std::memory_order_relaxed);
    return fiber;
  }

  bool empty() const noexcept { return head_.load(std::memory_order_seq_cst) == tail_.load(std::memory_order_seq_cst); }
  std::uint32_t size() const noexcept {
    return tail_.load(std::memory_order_relaxed) - head_.load(std::memory_order_relaxed);
  }

 private:
  static constexpr std::uint32_t kSlots = 256;

  // spill hands half of the full ring and `fiber` to the overflow inbox.
  void spill(FiberControl* fiber, Inbox& overflow) noexcept {
    for (std::uint32_t i = 0; i < kSlots / 2; ++i) {
      if (FiberControl* oldest = pop(); oldest != nullptr) overflow.push(oldest);
    }
    overflow.push(fiber);
  }

  alignas(64) Atomic<std::uint32_t> head_{0};
  alignas(64) Atomic<std::uint32_t> tail_{0};
  Atomic<FiberControl*> slots_[kSlots] = {};
};
#endif

}  // namespace coir
