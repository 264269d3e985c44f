#include "tls/library/trusted_time.h"

#include <coir/atomic.h>
#include <coir/tls.h>
#include <time.h>

namespace coir {
namespace tls {
namespace {

constinit Atomic<std::int64_t> g_floor{COIR_BUILD_TIME};
// The monotonic time at which the floor had certainly passed; 0 before the first call.
constinit Atomic<std::int64_t> g_floor_at{0};

std::int64_t monotonic_seconds() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec + 1;
}

// since_floor is the time since then. It tells, without a set clock, when a ticket's key has served for a day.
std::int64_t since_floor() noexcept {
  const std::int64_t now = monotonic_seconds();
  std::int64_t at = 0;
  return g_floor_at.compare_exchange_strong(at, now, std::memory_order_relaxed) ? 0 : now - at;
}

}  // namespace

TrustedTime trusted_time() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  const std::int64_t floor = g_floor.load(std::memory_order_relaxed);
  const std::int64_t passed = since_floor();
  if (now.tv_sec >= floor) return {.seconds = now.tv_sec, .valid = true};
  return {.seconds = floor + passed, .valid = false};
}

}  // namespace tls

bool time_valid() noexcept {
  return tls::trusted_time().valid;
}

void forget_times_seen() noexcept {
  tls::g_floor.store(COIR_BUILD_TIME, std::memory_order_relaxed);
}

std::int64_t time_of_build() noexcept {
  return COIR_BUILD_TIME;
}

void time_was_seen(std::int64_t seconds) noexcept {
  std::int64_t floor = tls::g_floor.load(std::memory_order_relaxed);
  if (seconds <= floor) return;
  // Store this before the floor, so that in between the time is too early rather than too late.
  tls::g_floor_at.store(tls::monotonic_seconds(), std::memory_order_relaxed);
  while (seconds > floor && !tls::g_floor.compare_exchange_weak(floor, seconds, std::memory_order_relaxed)) {
  }
}

}  // namespace coir
