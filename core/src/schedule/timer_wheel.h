#pragma once

#include <cstdint>

#include <coir/atomic.h>
#include <coir/spinlock.h>

namespace coir {

class FiberList;
class TimerWheel;
struct FiberControl;

// Timer is armed in one wheel at a time; its owner keeps it in place until it has fired or stop() has returned.
struct Timer {
  // Fire runs under the wheel's lock, on a worker's stack: it claims at most, and returns the fiber that advance wakes
  // once the lock is free, claimed and parked, or null.
  using Fire = FiberControl* (*)(Timer& self);

  explicit Timer(Fire on_fire) noexcept : fire(on_fire) {}
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  Fire fire;
  Timer* next = nullptr;
  Timer** link = nullptr;  // where the pointer to this timer is; null when it is not armed
  std::uint64_t due_tick = 0;
  TimerWheel* wheel = nullptr;
};

// TimerWheel is a hierarchical timing wheel (Varghese and Lauck, "Hashed and Hierarchical Timing Wheels", 1987): eight
// levels of 64 slots and a tick of 65.5 us, about the slack of the kernel's timers, last longer than 63 bits of
// nanoseconds. A timer stands on the level of the highest six-bit
// digit in which its tick differs from the wheel's, so that slots never wrap. Start and stop are O(1); a timer is moved
// at most seven times. The links are not those of detail/intrusive_list.h: `link` takes a timer out of its slot without a
// search for the slot.
class TimerWheel {
 public:
  static constexpr unsigned kTickBits = 16;
  static constexpr std::int64_t kTickNs = std::int64_t{1} << kTickBits;

  // start arms `timer` for the first tick at or after `due_ns`. Any thread.
  void start(Timer& timer, std::int64_t due_ns) noexcept;

  // stop disarms; once it returns, `fire` does not run and is not running. Any thread but the one in fire.
  void stop(Timer& timer) noexcept;

  // advance fires everything due at `now_ns`, wakes whom that claimed, and returns how many fired. Workers.
  std::uint32_t advance(std::int64_t now_ns) noexcept;

  // next_due_ns is when to call advance next: never later than the first timer, sometimes earlier; INT64_MAX when no
  // timer is armed. Any thread, without the lock.
  std::int64_t next_due_ns() const noexcept { return next_due_ns_.load(std::memory_order_seq_cst); }

  std::uint32_t armed() const noexcept { return armed_.load(std::memory_order_relaxed); }

 private:
  static constexpr unsigned kLevels = 8, kDigitBits = 6, kSlots = 1u << kDigitBits;
  static_assert(kTickBits + kLevels * kDigitBits > 63, "every deadline has its slot");

  // collect fires what is due and lists whom to wake.
  std::uint32_t collect(std::int64_t now_ns, FiberList& claimed) noexcept;
  void place(Timer& timer) noexcept;
  static void unlink(Timer& timer) noexcept;
  // at_tick is the time at which a tick begins. The last one lies behind all times.
  static std::int64_t at_tick(std::uint64_t tick) noexcept {
    constexpr std::uint64_t kLast = std::uint64_t{1} << (63 - kTickBits);
    return tick < kLast ? static_cast<std::int64_t>(tick << kTickBits) : INT64_MAX;
  }
  struct Position {
    unsigned level;
    unsigned slot;
    std::uint64_t tick;
  };
  bool first(Position& position) noexcept;
  void publish_next() noexcept;

  Spinlock lock_;
  std::uint64_t now_tick_ = 0;
  Atomic<std::int64_t> next_due_ns_{INT64_MAX};
  Atomic<std::uint32_t> armed_{0};
  std::uint64_t occupied_[kLevels] = {};  // may name a slot that stop() has emptied; first() mends that
  Timer* slots_[kLevels][kSlots] = {};
};

}  // namespace coir
