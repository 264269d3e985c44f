#pragma once

#include <coir/deadline.h>

#include <cstdint>

namespace coir::test {

// Random is one thread's or fiber's own series of numbers: xorshift64* (Vigna). Its state is never 0.
struct Random {
  std::uint64_t state;
  std::uint32_t below(std::uint32_t limit) noexcept {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return static_cast<std::uint32_t>(state * 0x2545f4914f6cdd1du >> 32) % limit;
  }
  std::chrono::microseconds micros(std::uint32_t most) noexcept { return std::chrono::microseconds(below(most)); }

  // split is the start of another series.
  Random split() noexcept {
    const std::uint64_t mixed = (state ^ below(UINT32_MAX)) * 0x9e3779b97f4a7c15u;
    return {mixed | 1};
  }
};

}  // namespace coir::test
