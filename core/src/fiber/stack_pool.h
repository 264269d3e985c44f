#pragma once

#include <cstddef>
#include <cstdint>

#include <coir/error.h>
#include <coir/spinlock.h>
#include <coir/stack_size.h>

#include "base/biased_lock.h"
#include "fiber/control.h"

namespace coir {

// GuardMode is how the stacks of an arena are protected, weakest last.
enum class GuardMode : std::uint8_t {
  advice,   // every stack, by MADV_GUARD_INSTALL: no mapping is spent
  protect,  // every stack so far, by mprotect
  group,    // one guard per group of stacks beyond the share of the map count, and a canary under each
};

// StackArena holds the stacks of one class: a dense run of slots in one reservation, each a guard page, a stack that
// grows down and, at the top, the FiberControl. Dense, because stacks spread far apart pay a page table page each.
//
// Slots are used lowest first. A free slot is cold (its pages are given back and its bit is set) or lies hot in a
// worker's cache.
class StackArena {
 public:
  static constexpr std::size_t kGuardBytes = port::kStackGuardBytes;
  static constexpr std::uint32_t kGroup = 16;

  // prepare fixes the class and the largest number of stacks; address space is reserved at the first acquire.
  // The arena stays reserved between runs, with its guards, so that a handle from an earlier run reads as stale.
  void prepare(std::size_t stack_class, std::uint32_t capacity, std::size_t guard_mappings) noexcept;

  // guard_by sets how slots are guarded from now on, and how many mappings guards may take: tests use it to act as on
  // kernels that offer less.
  void guard_by(GuardMode mode, std::size_t guard_mappings) noexcept {
    mode_.store(mode, std::memory_order_relaxed);
    guard_mappings_ = guard_mappings;
  }

  // empty forgets all slots and gives their pages back, at the end of a run; release gives back the address space too.
  void empty() noexcept;
  void release() noexcept;

  // acquire returns a slot's control block and charges its stack to account::stacks, or returns nullptr with `error`
  // set to limit (the capacity or the ledger) or no_memory.
  FiberControl* acquire(Error& error) noexcept;

  // cool frees the pages of a slot, refunds them and keeps the slot for a later acquire.
  void cool(FiberControl* control) noexcept;

  // contains tells whether `address` lies in a slot's guard page or stack, and whose.
  bool contains(const void* address, FiberControl*& owner, bool& in_guard) const noexcept;

  // for_each calls visit for every slot that was ever used and is not cold.
  template <class Visit>
  void for_each(Visit&& visit) const {
    const std::uint32_t used = used_.load(std::memory_order_acquire);
    for (std::uint32_t i = 0; i < used; ++i) {
      if ((cold_[i / 64].load(std::memory_order_relaxed) >> (i % 64) & 1) == 0) visit(*control_of(i));
    }
  }

  std::size_t stack_bytes() const noexcept { return stack_bytes_; }
  static char* low_end(FiberControl* control, std::size_t stack_bytes) noexcept {
    return reinterpret_cast<char*>(control + 1) - stack_bytes;
  }

  std::uint32_t used() const noexcept { return used_.load(std::memory_order_relaxed); }
  // guarded is how many slots have a guard of their own, those that an earlier run used included.
  std::uint32_t guarded() const noexcept { return guarded_.load(std::memory_order_relaxed); }
  GuardMode guard_mode() const noexcept { return mode_.load(std::memory_order_relaxed); }

 private:
  friend struct DebuggerView;

  bool reserve() noexcept;
  bool arm_guard(std::uint32_t index) noexcept;
  FiberControl* take_cold() noexcept;
  FiberControl* grow(Error& error) noexcept;
  char* slot(std::uint32_t index) const noexcept { return base_ + std::size_t{index} * stride_; }
  FiberControl* control_of(std::uint32_t index) const noexcept {
    return reinterpret_cast<FiberControl*>(slot(index) + stride_) - 1;
  }
  bool is_guarded(std::uint32_t index) const noexcept {
    // acquire pairs with the release in arm_guard: first_unguarded_ is set before the mode.
    return mode_.load(std::memory_order_acquire) != GuardMode::group ||
           index < first_unguarded_.load(std::memory_order_relaxed) ||
           (index % kGroup == 0 && group_guards_.load(std::memory_order_relaxed));
  }

  // lock_ guards the cold slots. growing_ is set while one thread uses a slot for the first time: that thread alone
  // changes base_, capacity_, used_, armed_ and how slots are guarded.
  Spinlock lock_;
  Atomic<bool> growing_{false};
  char* base_ = nullptr;
  std::size_t reserved_bytes_ = 0;
  std::size_t stride_ = 0;
  std::size_t stack_bytes_ = 0;
  std::uint8_t stack_class_ = 0;
  Atomic<GuardMode> mode_{GuardMode::advice};
  std::uint32_t capacity_ = 0;
  Atomic<std::uint32_t> used_{0};
  std::uint32_t armed_ = 0;  // slots below it have been through arm_guard
  Atomic<std::uint32_t> guarded_{0};
  Atomic<std::uint32_t> first_unguarded_{0};
  Atomic<bool> group_guards_{true};        // false once the kernel refuses even those
  std::size_t guard_mappings_ = 0;         // how many more mprotect guards this arena may spend
  Atomic<std::uint64_t>* cold_ = nullptr;  // one bit a slot, behind the slots in the same reservation
  std::uint32_t cold_count_ = 0;
  std::uint32_t cold_hint_ = 0;  // no word before it has a bit set
};

// StackPool is the four arenas, one pool for the process and one for each isolated run. Each worker keeps a StackCache
// before it, so that reuse of a hot stack is a list operation.
class StackPool {
 public:
  // prepare sets the arenas up for one part in `share` of the board's numbers; once.
  void prepare(std::uint32_t share = 1) noexcept;
  // empty frees all resident pages, once all fibers have ended; release frees the address space as well.
  void empty() noexcept;
  void release() noexcept;

  StackArena& arena(std::size_t stack_class) noexcept { return arenas_[stack_class]; }
  const StackArena& arena(std::size_t stack_class) const noexcept { return arenas_[stack_class]; }

  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const StackArena& arena : arenas_) arena.for_each(visit);
  }

 private:
  StackArena arenas_[kStackClassCount];
};

// StackCache is one worker's hot stacks, last used first. Owner only, but for `raid`. They are linked by hand, through
// FiberControl::next: `take_beyond` cuts the list in the middle.
class StackCache {
 public:
  FiberControl* acquire(StackPool& pool, std::size_t stack_class, Error& error) noexcept {
    lock_.enter();
    FiberControl* const control = hot_[stack_class];
    if (control == nullptr) [[unlikely]] {
      lock_.leave();
      return pool.arena(stack_class).acquire(error);
    }
    hot_[stack_class] = control->next;
    bump(count_[stack_class], std::uint32_t{0} - 1);
    lock_.leave();
    return control;
  }

  void release(StackPool& pool, FiberControl* control) noexcept {
    const std::size_t stack_class = control->stack_class;
    if (count_[stack_class].load(std::memory_order_relaxed) >= limit_) [[unlikely]]
      return pool.arena(stack_class).cool(control);
    lock_.enter();
    control->next = hot_[stack_class];
    hot_[stack_class] = control;
    bump(count_[stack_class]);
    lock_.leave();
  }

  // raid takes all stacks of a class, linked by `next`, away from another worker; null where there are none. After
  // port::prepare_barrier.
  FiberControl* raid(std::size_t stack_class) noexcept;

  // trim frees all of them and returns how many bytes of stacks were refunded; halve frees, of each class, the half
  // that was used longest ago.
  std::size_t trim(StackPool& pool) noexcept;
  void halve(StackPool& pool) noexcept;

  void set_limit(std::uint32_t limit) noexcept { limit_ = limit; }

  // pooled is how many lie here. Any thread.
  std::uint32_t pooled() const noexcept {
    std::uint32_t sum = 0;
    for (const Atomic<std::uint32_t>& count : count_) sum += count.load(std::memory_order_relaxed);
    return sum;
  }

 private:
  // take_beyond takes all stacks of a class but the last used `kept` off the list; keep frees them, and returns the
  // bytes refunded.
  FiberControl* take_beyond(std::size_t stack_class, std::uint32_t kept) noexcept;
  std::size_t keep(StackPool& pool, std::size_t stack_class, std::uint32_t kept) noexcept;

  BiasedLock lock_;  // of the lists
  FiberControl* hot_[kStackClassCount] = {};
  Atomic<std::uint32_t> count_[kStackClassCount] = {};
  std::uint32_t limit_ = 0;
};

}  // namespace coir
