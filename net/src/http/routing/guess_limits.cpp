#include "http/routing/guess_limits.h"

#include <coir/config.h>
#include <coir/sleep.h>

#include <algorithm>
#include <span>

#include "http/connection/coarse_clock.h"
#if !COIR_NO_ASYNC
#include <coir/cancel_scope.h>
#include <coir/fiber.h>
#endif

namespace coir::http {
namespace {

constexpr std::uint8_t kMostFailures = 20;
constexpr std::uint32_t kHalvedAfterMs = 10'000;

std::uint32_t now_ms() noexcept {
  return static_cast<std::uint32_t>(coarse_ns() / 1'000'000);
}

// age_ms is how long ago something was seen; another worker's clock may be a moment ahead.
std::uint32_t age_ms(std::uint32_t now, std::uint32_t seen) noexcept {
  return static_cast<std::uint32_t>(std::max(static_cast<std::int32_t>(now - seen), 0));
}

}  // namespace

GuessLimits::GuessLimits(std::size_t most_waiting) noexcept
    : most_(static_cast<std::uint32_t>(std::clamp<std::size_t>(most_waiting, 4, kMostWaiting))) {}

std::chrono::milliseconds GuessLimits::pause_after(unsigned failures) noexcept {
  constexpr std::chrono::milliseconds kFirst(50);
  return failures < 3 ? std::chrono::milliseconds(0) : kFirst * (1 << std::min(failures - 3, 6u));
}

// find returns the client's entry, which may have been another's that waits for nothing: there always is one.
GuessLimits::Client& GuessLimits::find(std::uint64_t key, std::uint32_t now) noexcept {
  Client* oldest = nullptr;
  for (Client& each : std::span(clients_).first(used_)) {
    if (each.key == key) return each;
    if (each.waiting != 0) continue;
    if (oldest == nullptr || age_ms(now, each.seen_ms) > age_ms(now, oldest->seen_ms)) oldest = &each;
  }
  if (used_ < kClients) oldest = &clients_[used_++];
  *oldest = {.key = key, .seen_ms = now};
  return *oldest;
}

std::optional<GuessLimits::Place> GuessLimits::enter(std::uint64_t client) noexcept {
  const std::uint32_t now = now_ms();
  const Locked locked(lock_);
  if (waiting_ >= most_) return std::nullopt;
  Client& one = find(client, now);
  if (one.waiting >= most_ - most_ / 4) return std::nullopt;
  ++waiting_;
  ++one.waiting;
  return static_cast<Place>(&one - clients_);
}

void GuessLimits::leave(Place place, bool wrong) noexcept {
  const std::uint32_t now = now_ms();
  [[maybe_unused]] unsigned failures = 0;
  {
    const Locked locked(lock_);
    Client& one = clients_[place];
    --waiting_;
    --one.waiting;
    if (!wrong) return;
    const std::uint32_t halvings = std::min<std::uint32_t>(age_ms(now, one.seen_ms) / kHalvedAfterMs, 7);
    one.failures = static_cast<std::uint8_t>(std::min<unsigned>((one.failures >> halvings) + 1u, kMostFailures));
    one.seen_ms = now;
    failures = one.failures;
  }
#if !COIR_NO_ASYNC  // there a pause would hold back everybody
  const auto pause = pause_after(failures);
  if (pause.count() == 0) return;
  // relaxed: a count that is a bound, and carries nothing.
  if (held_back_.fetch_add(1, std::memory_order_relaxed) < most_ / 2) {
    const Deadline over = Deadline::after(pause);
    // A client that has ended its side still reads the verdict: it waits like any other. A shielded wait offers no place,
    // but what the first has offered others may take all the time.
    if (!sleep_until(over)) {
      const Shield shield(Deadline::never());
      static_cast<void>(sleep_until(over));
    }
  }
  held_back_.fetch_sub(1, std::memory_order_relaxed);
#endif
}

}  // namespace coir::http
