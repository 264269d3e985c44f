#include "http/connection/coarse_clock.h"

#include <time.h>

namespace coir::http {

std::int64_t coarse_ns() noexcept {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

}  // namespace coir::http
