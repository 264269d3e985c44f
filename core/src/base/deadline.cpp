#include <coir/deadline.h>

#include <time.h>

namespace coir {

std::int64_t monotonic_ns() noexcept {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

int Deadline::remaining_ms() const noexcept {
  if (is_never()) return -1;
  const std::int64_t left = ns_ - monotonic_ns();
  if (left <= 0) return 0;
  const std::int64_t ms = (left + 999'999) / 1'000'000;
  return ms > 0x7fffffff ? 0x7fffffff : static_cast<int>(ms);
}

}  // namespace coir
