#include "fiber/stack_pool.h"

#include <coir/ledger.h>
#include <coir/port/limits.h>
#include <coir/port/memory.h>

#include <cstdint>
#include <iterator>
#include <utility>

#include "base/fallback.h"

namespace coir {

static_assert(StackArena::kGuardBytes % port::kPageBytes == 0);

void StackArena::prepare(std::size_t stack_class, std::uint32_t capacity, std::size_t guard_mappings) noexcept {
  if (stack_bytes_ != 0) return;
  stack_class_ = static_cast<std::uint8_t>(stack_class);
  stack_bytes_ = nominal_stack_bytes(stack_class) * kStackInflation;
  stride_ = kGuardBytes + stack_bytes_;
  capacity_ = capacity;
  guard_mappings_ = guard_mappings;
}

// reserve asks for the whole capacity; where a limit on address space refuses, it halves the request until it succeeds.
// An arena of half the addresses or more is not asked for: its size may not fit into a word.
bool StackArena::reserve() noexcept {
  for (; capacity_ > 0; capacity_ /= 2) {
    if (capacity_ > SIZE_MAX / 2 / stride_) continue;
    const std::size_t slots = std::size_t{capacity_} * stride_;
    const std::size_t bitmap = (std::size_t{capacity_} + 63) / 64 * sizeof(std::uint64_t);
    base_ = static_cast<char*>(port::reserve(slots + bitmap));
    if (base_ != nullptr) {
      reserved_bytes_ = slots + bitmap;
      cold_ = reinterpret_cast<Atomic<std::uint64_t>*>(base_ + slots);
      return true;
    }
  }
  return false;
}

void StackArena::empty() noexcept {
  const std::uint32_t used = used_.load(std::memory_order_relaxed);
  for (std::uint32_t i = 0; i < used; ++i) port::give_back(slot(i) + kGuardBytes, stack_bytes_);
  account::stacks.refund(std::size_t{used - cold_count_} * stack_bytes_);
  for (std::uint32_t i = 0; i < used; i += 64) cold_[i / 64].store(0, std::memory_order_relaxed);
  used_.store(0, std::memory_order_relaxed);
  cold_count_ = cold_hint_ = 0;
}

void StackArena::release() noexcept {
  if (base_ != nullptr) port::release(base_, reserved_bytes_);
  base_ = nullptr;
}

FiberControl* StackArena::acquire(Error& error) noexcept {
  if (!account::stacks.charge(stack_bytes_)) {
    error = {ErrorCode::limit};
    return nullptr;
  }
  FiberControl* control = take_cold();
  for (SpinWait turn; control == nullptr; control = take_cold()) {
    // acquire pairs with the release below: who grows sees what the one before has left.
    if (growing_.exchange(true, std::memory_order_acquire)) {
      turn.pause();
      continue;
    }
    control = grow(error);
    growing_.store(false, std::memory_order_release);
    if (control != nullptr) return control;
    // One may have become cold since the first look.
    if (control = take_cold(); control == nullptr) {
      account::stacks.refund(stack_bytes_);
      return nullptr;
    }
    break;
  }
  return control;
}

// take_cold takes the lowest cold slot, or returns null. A slot was armed before it was first used.
FiberControl* StackArena::take_cold() noexcept {
  std::uint32_t index;
  {
    Locked hold(lock_);
    if (cold_count_ == 0) return nullptr;
    while (cold_[cold_hint_].load(std::memory_order_relaxed) == 0) ++cold_hint_;
    const std::uint64_t word = cold_[cold_hint_].load(std::memory_order_relaxed);
    cold_[cold_hint_].store(word & (word - 1), std::memory_order_relaxed);
    --cold_count_;
    index = cold_hint_ * 64 + static_cast<std::uint32_t>(__builtin_ctzll(word));
  }
  FiberControl* const control = control_of(index);
  control->stack_class = stack_class_;
  control->guarded = is_guarded(index);
  return control;
}

// grow uses the next slot for the first time in this run, which takes system calls. By the one that has set growing_.
FiberControl* StackArena::grow(Error& error) noexcept {
  if (base_ == nullptr && !reserve()) {
    error = {ErrorCode::no_memory};
    return nullptr;
  }
  const std::uint32_t index = used_.load(std::memory_order_relaxed);
  if (index == capacity_) {
    error = {ErrorCode::limit};
    return nullptr;
  }
  FiberControl* const control = control_of(index);
  control->stack_class = stack_class_;
  control->guarded = index < armed_ ? is_guarded(index) : arm_guard(index);
  // release pairs with the acquire in for_each: the slot's first fields are there before it is visited.
  used_.store(index + 1, std::memory_order_release);
  return control;
}

// arm_guard protects a slot when it is used for the first time; its guard stays for good.
bool StackArena::arm_guard(std::uint32_t index) noexcept {
  char* const page = slot(index);
  armed_ = index + 1;
  if (guard_mode() == GuardMode::advice) {
    if (port::guard_by_advice(page, kGuardBytes)) {
      bump(guarded_);
      return true;
    }
    mode_.store(GuardMode::protect, std::memory_order_relaxed);
    tell_fallback(Fallback::guards_protect);
  }
  if (guard_mode() == GuardMode::protect) {
    if (guard_mappings_ > 0 && port::guard_by_protection(page, kGuardBytes)) {
      --guard_mappings_;
      bump(guarded_);
      return true;
    }
    first_unguarded_.store(index, std::memory_order_relaxed);
    // release pairs with the acquire in is_guarded.
    mode_.store(GuardMode::group, std::memory_order_release);
    tell_fallback(Fallback::guards_group);
    // The mappings left for guards of groups, which split the mapping too.
    guard_mappings_ = capacity_ / kGroup + 1;
  }
  if (index % kGroup != 0 || !group_guards_.load(std::memory_order_relaxed)) return false;
  if (guard_mappings_ == 0 || !port::guard_by_protection(page, kGuardBytes)) {
    group_guards_.store(false, std::memory_order_relaxed);
    tell_fallback(Fallback::guards_none);
    return false;
  }
  --guard_mappings_;
  bump(guarded_);
  return true;
}

void StackArena::cool(FiberControl* control) noexcept {
  const auto index =
      static_cast<std::uint32_t>(static_cast<std::size_t>(reinterpret_cast<char*>(control) - base_) / stride_);
  // Before the bit is set, the slot is the caller's: no other thread waits for the kernel.
  port::give_back(slot(index) + kGuardBytes, stack_bytes_);
  account::stacks.refund(stack_bytes_);
  Locked hold(lock_);
  cold_[index / 64].fetch_or(std::uint64_t{1} << (index % 64), std::memory_order_relaxed);
  if (cold_count_ == 0 || index / 64 < cold_hint_) cold_hint_ = index / 64;
  ++cold_count_;
}

bool StackArena::contains(const void* address, FiberControl*& owner, bool& in_guard) const noexcept {
  const auto* at = static_cast<const char*>(address);
  if (base_ == nullptr || at < base_ || at >= base_ + std::size_t{used()} * stride_) return false;
  const auto offset = static_cast<std::size_t>(at - base_);
  owner = control_of(static_cast<std::uint32_t>(offset / stride_));
  in_guard = offset % stride_ < kGuardBytes;
  return true;
}

FiberControl* StackCache::take_beyond(std::size_t stack_class, std::uint32_t kept) noexcept {
  FiberControl** link = &hot_[stack_class];
  for (std::uint32_t n = 0; n < kept && *link != nullptr; ++n) link = &(*link)->next;
  FiberControl* const taken = std::exchange(*link, nullptr);
  if (taken != nullptr) count_[stack_class].store(kept, std::memory_order_relaxed);
  return taken;
}

std::size_t StackCache::keep(StackPool& pool, std::size_t stack_class, std::uint32_t kept) noexcept {
  lock_.enter();
  FiberControl* taken = take_beyond(stack_class, kept);
  lock_.leave();
  StackArena& arena = pool.arena(stack_class);
  std::size_t bytes = 0;
  while (FiberControl* const control = taken) {
    taken = control->next;
    arena.cool(control);
    bytes += arena.stack_bytes();
  }
  return bytes;
}

FiberControl* StackCache::raid(std::size_t stack_class) noexcept {
  for (SpinWait turn; count_[stack_class].load(std::memory_order_relaxed) != 0; turn.pause()) {
    const BiasedLock::Raid raid = lock_.raid();
    if (raid == BiasedLock::Raid::impossible) break;
    if (raid == BiasedLock::Raid::repelled) continue;
    FiberControl* const taken = take_beyond(stack_class, 0);
    lock_.end_raid();
    return taken;
  }
  return nullptr;
}

std::size_t StackCache::trim(StackPool& pool) noexcept {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < kStackClassCount; ++i) bytes += keep(pool, i, 0);
  return bytes;
}

void StackCache::halve(StackPool& pool) noexcept {
  for (std::size_t i = 0; i < kStackClassCount; ++i) {
    const std::uint32_t count = count_[i].load(std::memory_order_relaxed);
    if (count > 1) keep(pool, i, count - count / 2);
  }
}

void StackPool::prepare(std::uint32_t share) noexcept {
  const port::Limits limits = port::limits();
  static_assert(std::size(limits.stacks) == kStackClassCount);
  // An mprotect guard in the middle of a mapping adds two mappings. The share is split evenly between the classes.
  const std::size_t guards = port::max_map_count() * limits.guard_percent / 100 / 2 / kStackClassCount;
  for (std::size_t i = 0; i < kStackClassCount; ++i) arenas_[i].prepare(i, limits.stacks[i] / share, guards / share);
}

void StackPool::release() noexcept {
  for (StackArena& arena : arenas_) arena.release();
}

void StackPool::empty() noexcept {
  for (StackArena& arena : arenas_) arena.empty();
}

}  // namespace coir
