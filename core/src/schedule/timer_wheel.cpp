#include "schedule/timer_wheel.h"

#include <algorithm>
#include <bit>

#include "schedule/run_queue.h"

namespace coir {

void TimerWheel::start(Timer& timer, std::int64_t due_ns) noexcept {
  Locked hold(lock_);
  const std::uint64_t tick = due_ns <= 0 ? 0 : (static_cast<std::uint64_t>(due_ns - 1) >> kTickBits) + 1;
  timer.due_tick = tick <= now_tick_ ? now_tick_ + 1 : tick;
  timer.wheel = this;
  place(timer);
  bump(armed_);
  const std::int64_t due = at_tick(timer.due_tick);
  if (due < next_due_ns_.load(std::memory_order_relaxed)) next_due_ns_.store(due, std::memory_order_seq_cst);
}

void TimerWheel::stop(Timer& timer) noexcept {
  Locked hold(lock_);
  if (timer.link == nullptr) return;
  unlink(timer);
  armed_.store(armed_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
  if (armed_.load(std::memory_order_relaxed) == 0) next_due_ns_.store(INT64_MAX, std::memory_order_seq_cst);
}

// Fibers are woken without the lock: a fiber that runs elsewhere stops its timer first, and a wakeup may be a system
// call, in which this thread can lose its CPU to the very worker that it wakes. Until then a claimed fiber stays parked,
// in no queue, so that its queue link is free.
std::uint32_t TimerWheel::advance(std::int64_t now_ns) noexcept {
  if (now_ns < next_due_ns_.load(std::memory_order_relaxed)) return 0;
  FiberList claimed;
  const std::uint32_t fired = collect(now_ns, claimed);
  while (FiberControl* const fiber = claimed.pop()) fiber->wake();
  return fired;
}

std::uint32_t TimerWheel::collect(std::int64_t now_ns, FiberList& claimed) noexcept {
  Locked hold(lock_);
  const std::uint64_t now = static_cast<std::uint64_t>(now_ns) >> kTickBits;
  std::uint32_t fired = 0;
  Position at;
  while (first(at) && at.tick <= now) {
    now_tick_ = at.tick;
    Timer* timer = slots_[at.level][at.slot];
    slots_[at.level][at.slot] = nullptr;
    occupied_[at.level] &= ~(std::uint64_t{1} << at.slot);
    while (timer != nullptr) {
      Timer* next = timer->next;
      timer->link = nullptr;
      if (timer->due_tick <= now_tick_) {
        armed_.store(armed_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
        ++fired;
        if (FiberControl* const fiber = timer->fire(*timer); fiber != nullptr) claimed.push(fiber);
      } else {
        place(*timer);
      }
      timer = next;
    }
  }
  if (now > now_tick_) now_tick_ = now;
  publish_next();
  return fired;
}

void TimerWheel::place(Timer& timer) noexcept {
  const std::uint64_t tick = timer.due_tick;
  const std::uint64_t differing = (tick ^ now_tick_) | 1;
  const unsigned level = (63u - static_cast<unsigned>(std::countl_zero(differing))) / kDigitBits;
  const unsigned slot = static_cast<unsigned>(tick >> (level * kDigitBits)) & (kSlots - 1);
  Timer*& head = slots_[level][slot];
  timer.next = head;
  timer.link = &head;
  if (head != nullptr) head->link = &timer.next;
  head = &timer;
  occupied_[level] |= std::uint64_t{1} << slot;
}

void TimerWheel::unlink(Timer& timer) noexcept {
  *timer.link = timer.next;
  if (timer.next != nullptr) timer.next->link = timer.link;
  timer.link = nullptr;
}

// first finds the earliest occupied slot: the lowest level that has one, for all of a level lies before the next one's
// slots.
bool TimerWheel::first(Position& position) noexcept {
  for (unsigned level = 0; level < kLevels; ++level) {
    while (occupied_[level] != 0) {
      const unsigned slot = static_cast<unsigned>(std::countr_zero(occupied_[level]));
      if (slots_[level][slot] == nullptr) {
        occupied_[level] &= occupied_[level] - 1;
        continue;
      }
      const unsigned shift = level * kDigitBits;
      const std::uint64_t upper = now_tick_ >> (shift + kDigitBits) << (shift + kDigitBits);
      position = {.level = level, .slot = slot, .tick = upper | std::uint64_t{slot} << shift};
      return true;
    }
  }
  return false;
}

// publish_next tells the time of the first timer if few share its slot, or else the slot's: then advance moves them all
// to lower levels.
void TimerWheel::publish_next() noexcept {
  Position at;
  std::int64_t due = INT64_MAX;
  if (first(at)) {
    constexpr int kFew = 8;
    int seen = 0;
    std::uint64_t tick = UINT64_MAX;
    const Timer* timer = slots_[at.level][at.slot];
    for (; timer != nullptr && seen < kFew; timer = timer->next, ++seen) tick = std::min(tick, timer->due_tick);
    due = at_tick(timer == nullptr ? tick : at.tick);
  }
  next_due_ns_.store(due, std::memory_order_seq_cst);
}

}  // namespace coir
