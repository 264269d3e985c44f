#pragma once

// The latest time at which a wait ends.
//
//   const Deadline soon = Deadline::after(250ms);
//   if (auto slept = coir::wait(fd, Direction::readable, soon); !slept) return complain(slept.error());

#include <coir/detail/chrono.h>

#include <compare>
#include <cstdint>

namespace coir {

// monotonic_ns reads CLOCK_MONOTONIC, in nanoseconds. Never goes back, is not moved by setting the clock.
std::int64_t monotonic_ns() noexcept;

// Deadline is an absolute point on the monotonic clock, the last argument of everything that blocks. A deadline is
// passed down through calls unchanged, so that a sequence of waits as a whole ends in time.
//
// Wakeups happen at or after it, on an idle worker within a tick of the timer wheel (66 us) and what the kernel takes.
class Deadline {
 public:
  // Implicitly never, so that a default argument reads well.
  constexpr Deadline() noexcept = default;

  static constexpr Deadline never() noexcept { return Deadline(); }
  static constexpr Deadline at_ns(std::int64_t monotonic) noexcept { return Deadline(monotonic); }
  // now has always passed: with it a wait becomes a poll.
  static constexpr Deadline now() noexcept { return Deadline(0); }
  static Deadline after(std::chrono::nanoseconds span) noexcept {
    const std::int64_t start = monotonic_ns();
    if (span.count() >= kNever - start) return never();
    return Deadline(start + (span.count() < 0 ? 0 : span.count()));
  }

  constexpr bool is_never() const noexcept { return ns_ == kNever; }
  constexpr std::int64_t ns() const noexcept { return ns_; }
  bool passed() const noexcept { return !is_never() && monotonic_ns() >= ns_; }

  // remaining_ms is what poll(2) takes: -1 for never, 0 when passed, else milliseconds rounded up.
  int remaining_ms() const noexcept;

  friend constexpr auto operator<=>(Deadline, Deadline) noexcept = default;

 private:
  static constexpr std::int64_t kNever = INT64_MAX;
  explicit constexpr Deadline(std::int64_t ns) noexcept : ns_(ns) {}
  std::int64_t ns_ = kNever;
};

}  // namespace coir
