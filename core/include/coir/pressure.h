#pragma once

#include <coir/ledger.h>

#include <cstddef>
#include <cstdint>

namespace coir {

// PressureStep is what is done about want of memory, mildest first.
enum class PressureStep : std::uint8_t {
  trim,        // what is kept for speed alone is given back: cached stacks, buffers, files
  close_idle,  // the connections that have been idle for longest are closed
  refuse,      // new work is turned away, politely
  pause,       // none is accepted until memory is below the low-water mark
};
inline constexpr std::size_t kPressureSteps = 4;

// Relief is one way to give memory back. Its owner adds it while it has something to give, and removes it before it
// goes away.
class Relief {
 public:
  // give returns about `wanted` bytes to the system, refunds them and says how many. It runs on whatever fiber or
  // thread wants room, one relief at a time in the process; it must not park and must not allocate.
  using Give = std::size_t (*)(void* context, std::size_t wanted) noexcept;

  constexpr Relief(PressureStep step, Give give, void* context) noexcept
      : step_(step), give_(give), context_(context) {}
  Relief(const Relief&) = delete;
  Relief& operator=(const Relief&) = delete;

 private:
  friend class Pressure;

  PressureStep step_;
  Give give_;
  void* context_;
  Relief* next_ = nullptr;  // in the order of the steps, which no list of detail/intrusive_list.h keeps
};

// Pressure makes room in the ledger when a charge does not fit, in the order of the steps. Each step is counted, and
// told on standard error once until the pressure is over. Nothing here allocates or parks; from fibers and threads.
class Pressure {
 public:
  // add and remove a relief. remove returns when it is certain not to run any more.
  static void add(Relief& relief) noexcept;
  static void remove(Relief& relief) noexcept;

  // charge is Account::charge which makes room first where it must: by trimming, and then by closing what is idle.
  [[nodiscard]] static bool charge(Account& account, std::size_t bytes) noexcept;

  // make_room lets the reliefs give until `bytes` more fit into `account` and the total. False: they do not fit yet, or
  // somebody else is about to make room.
  static bool make_room(const Account& account, std::size_t bytes) noexcept;

  // took notes that a step was taken. Those who turn work away or stop accepting it say so.
  static void took(PressureStep step) noexcept;

  // eased tells whether the total has sunk below the low-water mark, a sixteenth below the ceiling; if so, the next
  // step is told again.
  static bool eased() noexcept;

  // taken is how often a step was taken.
  static std::uint64_t taken(PressureStep step) noexcept;
};

}  // namespace coir
