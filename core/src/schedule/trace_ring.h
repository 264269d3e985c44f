#pragma once

#include <cstddef>
#include <cstdint>

#include <coir/atomic.h>
#include <coir/spinlock.h>

#include "schedule/trace.h"

namespace coir {

// TraceEvent is one change, as it lies in a ring.
struct TraceEvent {
  std::uint64_t at_ns;
  std::uint64_t fiber;
  TraceKind kind;
  WaitKind wait;
  std::uint16_t name;
  std::uint64_t object;    // spawned: the parent; woken, parked: what is waited for
  std::uint64_t flow;      // run, woken: the number of the wake
  std::uint64_t since_ns;  // woken, idle: when that began
};

// TraceRing keeps the latest events of one writer; the oldest are overwritten. Readers (trace_write.cpp) come at any
// time.
//
// Invariant: the event n lies in slot n mod capacity_ from when next_ > n until next_ = n + capacity_, when the writer
// begins to overwrite it. A reader that has copied it and then finds next_ below that has copied it whole: each word it
// loads acquires what the writer released with it, so that a word of the overwriting event shows next_ as it was then.
class TraceRing {
 public:
  static constexpr std::size_t kWords = 6;
  static constexpr std::size_t kEventBytes = kWords * sizeof(std::uint64_t);

  void use(void* memory, std::size_t bytes) noexcept {
    slots_ = static_cast<SharedAtomic<std::uint64_t>*>(memory);
    capacity_ = bytes / kEventBytes;
    next_.store(0, std::memory_order_relaxed);
  }
  bool usable() const noexcept { return slots_ != nullptr; }
  void* memory() const noexcept { return slots_; }

  // push appends. One writer at a time.
  void push(const TraceEvent& event) noexcept {
    const std::uint64_t n = next_.load(std::memory_order_relaxed);
    const std::uint64_t what = static_cast<std::uint64_t>(event.kind) | static_cast<std::uint64_t>(event.wait) << 8 |
                               std::uint64_t{event.name} << 16;
    const std::uint64_t words[kWords] = {event.at_ns, event.fiber, what, event.object, event.flow, event.since_ns};
    SharedAtomic<std::uint64_t>* const slot = slots_ + n % capacity_ * kWords;
    for (std::size_t i = 0; i < kWords; ++i) slot[i].store(words[i], std::memory_order_release);
    next_.store(n + 1, std::memory_order_release);
  }

  // written is how many events there have been; the oldest that a reader may ask for is first().
  std::uint64_t written() const noexcept { return next_.load(std::memory_order_acquire); }
  std::uint64_t first() const noexcept {
    const std::uint64_t end = written();
    return end >= capacity_ ? end - capacity_ + 1 : 0;
  }

  // read copies event n, which is below written(). False: it has been overwritten.
  bool read(std::uint64_t n, TraceEvent& into) const noexcept {
    std::uint64_t words[kWords];
    const SharedAtomic<std::uint64_t>* const slot = slots_ + n % capacity_ * kWords;
    for (std::size_t i = 0; i < kWords; ++i) words[i] = slot[i].load(std::memory_order_acquire);
    if (next_.load(std::memory_order_relaxed) >= n + capacity_) return false;
    into = {.at_ns = words[0],
            .fiber = words[1],
            .kind = static_cast<TraceKind>(words[2] & 0xff),
            .wait = static_cast<WaitKind>(words[2] >> 8 & 0xff),
            .name = static_cast<std::uint16_t>(words[2] >> 16),
            .object = words[3],
            .flow = words[4],
            .since_ns = words[5]};
    return true;
  }

 private:
  SharedAtomic<std::uint64_t>* slots_ = nullptr;
  std::uint64_t capacity_ = 0;
  SharedAtomic<std::uint64_t> next_{0};
};

// What write_trace reads: the rings of the workers, in their order, and last that of all other threads.
unsigned trace_rings() noexcept;
const TraceRing& trace_ring(unsigned index) noexcept;
const char* trace_name(std::uint16_t name) noexcept;

}  // namespace coir
