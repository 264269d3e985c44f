#pragma once

// Steps that a program takes when memory is short.
//
//   constinit PressureStep evict(1, "coird: memory is short: the longest idle connections are closed\n");
//
//   std::uint64_t evictions() { return evict.taken(); }

#include <coir/atomic.h>
#include <coir/ledger.h>

#include <cstddef>
#include <cstdint>

namespace coir {

// PressureStep is one thing that a program does when memory is short. A program has a few, each a static object of its
// own.
//
// `rank` orders the steps, mildest first: reliefs of a lower rank are asked first. `line` is a literal that ends in a
// newline; it is written to standard error when the step is taken, once until the pressure has been over for 10 seconds.
class PressureStep {
 public:
  constexpr PressureStep(std::uint8_t rank, const char* line) noexcept : line_(line), rank_(rank) {}
  PressureStep(const PressureStep&) = delete;
  PressureStep& operator=(const PressureStep&) = delete;

  // taken is how often the step was taken. Any thread.
  std::uint64_t taken() const noexcept { return taken_.load(std::memory_order_relaxed); }

 private:
  friend class Pressure;

  const char* const line_;
  const std::uint8_t rank_;
  Atomic<std::uint32_t> told_{0};  // the number of the latest pressure in which the line was written
  Atomic<std::uint64_t> taken_{0};
};

// Relief is one way to give memory back. Its owner adds it while it has something to give, and removes it before it
// goes away. The step outlives it.
class Relief {
 public:
  // give returns about `wanted` bytes to the system, refunds them and says how many. It runs on whatever fiber or
  // thread wants room, one relief at a time in the process; it must not park and must not allocate.
  using Give = std::size_t (*)(void* context, std::size_t wanted) noexcept;

  constexpr Relief(PressureStep& step, Give give, void* context) noexcept
      : step_(&step), give_(give), context_(context) {}
  Relief(const Relief&) = delete;
  Relief& operator=(const Relief&) = delete;

 private:
  friend class Pressure;

  PressureStep* step_;
  Give give_;
  void* context_;
  Relief* next_ = nullptr;  // in the order of the steps, which no list of detail/intrusive_list.h keeps
};

// Pressure makes room in the ledger when a charge does not fit, step by step. Nothing here allocates or parks. From
// fibers and threads.
class Pressure {
 public:
  // caches is the mildest step, of rank 0: memory that is kept for speed alone is given back. Core's own reliefs are of
  // this step.
  static PressureStep caches;

  // add and remove a relief. remove returns when it is certain not to run any more.
  static void add(Relief& relief) noexcept;
  static void remove(Relief& relief) noexcept;

  // charge is Account::charge that first makes room, by the reliefs, if it must.
  [[nodiscard]] static bool charge(Account& account, std::size_t bytes) noexcept;

  // make_room lets the reliefs give until `bytes` more fit into `account` and the total. False: they do not fit yet, or
  // somebody else is about to make room.
  static bool make_room(const Account& account, std::size_t bytes) noexcept;

  // took counts a step that the caller has taken by itself, and writes its line. Steps by reliefs are counted already.
  static void took(PressureStep& step) noexcept;

  // eased tells whether the total has sunk below the low-water mark, a sixteenth below the ceiling. If so, and no step
  // has been taken for 10 seconds, the pressure is over, and the next step writes its line again.
  static bool eased() noexcept;
};

}  // namespace coir
