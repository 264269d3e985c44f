#include "trusted_time.h"

#include <coir/atomic.h>
#include <coir/net/tls.h>
#include <time.h>

namespace coir {
namespace tls {
namespace {

constinit Atomic<std::int64_t> g_floor{COIR_BUILD_TIME};

}  // namespace

TrustedTime trusted_time() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  const std::int64_t floor = g_floor.load(std::memory_order_relaxed);
  if (now.tv_sec >= floor) return {.seconds = now.tv_sec, .valid = true};
  return {.seconds = floor, .valid = false};
}

}  // namespace tls

bool time_valid() noexcept {
  return tls::trusted_time().valid;
}

void time_was_seen(std::int64_t seconds) noexcept {
  std::int64_t floor = tls::g_floor.load(std::memory_order_relaxed);
  while (seconds > floor && !tls::g_floor.compare_exchange_weak(floor, seconds, std::memory_order_relaxed)) {
  }
}

}  // namespace coir
