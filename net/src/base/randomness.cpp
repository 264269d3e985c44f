#include "base/randomness.h"

#include <coir/deadline.h>
#include <sys/random.h>
#include <sys/types.h>

#include <cstdint>

namespace coir {

void fill_with_randomness(std::span<char> into) noexcept {
  if (::getrandom(into.data(), into.size(), GRND_NONBLOCK) == static_cast<ssize_t>(into.size())) return;
  // SplitMix64 (Steele, Lea, Flood 2014).
  auto state = static_cast<std::uint64_t>(monotonic_ns());
  for (char& each : into) {
    state += 0x9e3779b97f4a7c15;
    std::uint64_t mixed = state;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
    each = static_cast<char>(mixed >> 56);
  }
}

}  // namespace coir
