#pragma once

#include <time.h>

#include <cstdint>

namespace coir {

// A tick is a point in time for people to read, "parked for 3.2 s": the monotonic clock in units of 16.8 ms, which
// wraps after 2.3 years. The coarse clock costs a fraction of the fine one. If the kernel has neither in user space,
// it is read only once in many switches.
inline constexpr unsigned kTickShift = 24;

inline std::uint32_t tick_now() noexcept {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return static_cast<std::uint32_t>((std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec) >> kTickShift);
}

// ns_since is how long ago a tick was; 0 for a tick in the future.
inline std::int64_t ns_since(std::uint32_t tick) noexcept {
  const auto passed = static_cast<std::int32_t>(tick_now() - tick);
  return passed > 0 ? std::int64_t{passed} << kTickShift : 0;
}

}  // namespace coir
