#include "http/concurrent/reaper.h"

#include <coir/heartbeat.h>

#include <algorithm>

#include "http/connection/coarse_clock.h"

namespace coir::http {

using namespace std::chrono_literals;

bool Reaper::start() noexcept {
  // Kept by reference, not as a handle: the engine may outlive the runtime.
  // It is the server's, which its caller's children may outlive or not.
  const Fiber fiber = spawn({.name = "http reaper", .stack = 8_KiB, .detached = true}, [this]() noexcept { run(); });
  fiber_ = fiber;
  return fiber.started();
}

void Reaper::run() noexcept {
  const ServerOptions& options = engine_.options;
  const auto calm = engine_.look_interval();
  for (;;) {
    const bool some_wait = dispatcher_.gauges().waiting > 0;
    if (!dispatcher_.await_hurry(some_wait ? std::min<std::chrono::nanoseconds>(calm, 50ms) : calm)) return;
    if (options.heartbeat != nullptr) options.heartbeat->report();
    const std::int64_t now = coarse_ns();
    const std::int64_t rested_since = now - std::chrono::nanoseconds(options.idle_timeout).count();
    dispatcher_.close_resting(engine_.counters.expired, rested_since);
    close_late_handshakes();
    serve_half_heads(now - std::chrono::nanoseconds(options.header_timeout).count());
    engine_.keepers.look_around(now);
    evictor_.relieve();
    dispatcher_.grant_places();
    if (!some_wait) continue;
    // The places of most slow clients are lent to others, who need the memory of one at most.
    using enum Dispatcher::Lack;
    if (!engine_.lends_places || dispatcher_.lack(now) == memory) dispatcher_.waits.end_slow_heads();
    const auto lack = dispatcher_.lack(now - Dispatcher::kHeldUpNs);
    if (lack != nothing) dispatcher_.waits.end_slowest_transfer(lack == memory);
    evictor_.shed_waiting(now - std::chrono::nanoseconds(options.header_timeout).count());
  }
}

// close_late_handshakes closes those whose time is over, and while others wait to begin, those whose clients are
// silent.
void Reaper::close_late_handshakes() noexcept {
  const std::int64_t now = coarse_ns();
  const std::int64_t limit = std::chrono::nanoseconds(engine_.options.handshake_timeout).count();
  dispatcher_.close_each(engine_.counters.expired, [&](ConnectionQueues& queues) {
    return queues.take_handshake([&](const Connection& each) {
      return each.in_handshake ? each.stream.handshake_deadline().ns() <= now : each.since_ns + limit <= now;
    });
  });
  while (dispatcher_.handshake_held_up() && dispatcher_.close_silent_handshake()) {
  }
}

// serve_half_heads has sessions serve connections whose heads began so long ago: they answer 408.
void Reaper::serve_half_heads(std::int64_t not_after_ns) noexcept {
  const auto half = [=](ConnectionQueues& queues) { return queues.take_half_head(not_after_ns); };
  while (Connection* const connection = dispatcher_.take(half)) dispatcher_.serve_soon(*connection);
}

void Reaper::close_all_resting() noexcept {
  serve_half_heads(INT64_MAX);
  Atomic<std::uint64_t>& counter = engine_.counters.stopped_idle;
  dispatcher_.close_resting(counter, INT64_MAX);
  dispatcher_.close_each(
      counter, [](ConnectionQueues& queues) { return queues.take_handshake([](const Connection&) { return true; }); });
}

}  // namespace coir::http
