// The end of a FiberEngine: accepting stops, what rests is closed, and requests in progress end.
#include <coir/cancel_scope.h>
#include <coir/fiber.h>
#include <coir/signal.h>
#include <signal.h>

#include <algorithm>

#include "http/concurrent/fiber_engine.h"
#include "http/connection/coarse_clock.h"

namespace coir::http {

using namespace std::chrono_literals;

void FiberEngine::begin_stop() noexcept {
  // A second call renews nothing.
  std::int64_t none = 0;
  heads_end_ns_.compare_exchange_strong(none, coarse_ns() + kHeadGraceAtStopNs, std::memory_order_relaxed);
  stopping_.store(true, std::memory_order_relaxed);
  stops.cancel(kServerStops);
  acceptor.cancel();
  reaper.cancel();
  static_cast<void>(stopped());
}

bool FiberEngine::stopped() noexcept {
  if (!stopping()) return false;
  // Asked first: what it has accepted last is found below.
  const bool accepts = acceptor.alive();
  // Connections that went to rest while stopping_ was being set are found here as well.
  reaper.close_all_resting();
  // Asked first: a handler that is still at work may attach a keeper.
  const bool none_open = dispatcher.gauges().open == 0;
  const bool none_kept = keepers.stop();
  // The reaper has ended.
  if (!none_kept) keepers.look_around(coarse_ns());
  dispatcher.grant_places();
  // Those that wait may hold the very memory that serving one of them takes.
  const std::int64_t long_ago = coarse_ns() - Dispatcher::kHeldUpNs;
  if (dispatcher.lack(long_ago) == Dispatcher::Lack::memory) evictor.shed_waiting(long_ago);
  if (coarse_ns() >= heads_end_ns_.load(std::memory_order_relaxed)) dispatcher.waits.end_heads();
  // Asked last: those that still serve may spawn another.
  return none_kept && !accepts && !reaper.alive() && none_open && !dispatcher.at_work();
}

std::expected<void, Error> FiberEngine::stop(Deadline deadline) noexcept {
  begin_stop();
  while (!stopped()) {
    if (deadline.passed()) return std::unexpected(Error{ErrorCode::timed_out});
    if (auto slept = sleep(10ms); !slept) return slept;
  }
  return {};
}

std::size_t FiberEngine::serve_until(std::initializer_list<int> signals,
                                     std::chrono::milliseconds drain_timeout) noexcept {
  // If the kernel lacks memory or descriptors for the wait, it is tried again: that is no reason to stop.
  for (;;) {
    const auto signal = wait_signal(signals);
    if (signal && *signal != SIGHUP) break;
    if (signal) {
      if (options.on_hangup) options.on_hangup();
    } else if (!sleep(100ms)) {
      break;
    }
  }
  const Deadline deadline = Deadline::after(drain_timeout);
  if (options.on_stop) options.on_stop();
  begin_stop();
  while (!stopped()) {
    if (deadline.passed() || cancelled()) return cut_off();
    const Deadline next = std::min(deadline, Deadline::after(20ms));
    const Shield shield(next);
    const auto signal = wait_signal(signals, next);
    if (signal && *signal != SIGHUP) return cut_off();
    if (!signal) static_cast<void>(sleep_until(next));  // where the kernel is short, it has failed at once
  }
  return 0;
}

std::size_t FiberEngine::cut_off() noexcept {
  const std::size_t open = dispatcher.gauges().open;
  // The owner of a local server destroys it next. The run would wait for the handlers anyhow.
  const Shield shield(Deadline::never());
  keepers.cut_off();
  for (dispatcher.host.cut_off(); !stopped(); dispatcher.host.cut_off()) static_cast<void>(sleep(5ms));
  return open;
}

}  // namespace coir::http
