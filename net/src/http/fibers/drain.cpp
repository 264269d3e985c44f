// The end of a FiberEngine: accepting stops, what rests is closed, and requests in progress end.
#include <coir/runtime.h>
#include <coir/signal.h>
#include <signal.h>

#include <algorithm>

#include "http/fibers/fiber_engine.h"

namespace coir::http {

using namespace std::chrono_literals;

void FiberEngine::begin_stop() noexcept {
  stopping_.store(true, std::memory_order_relaxed);
  acceptor.cancel();
  reaper.cancel();
  // Those that are detached from here on find out by themselves.
  detached.end_reading();
  stops.cancel("the server stops");
  static_cast<void>(stopped());
}

bool FiberEngine::stopped() noexcept {
  if (!stopping()) return false;
  // Connections that went to rest while stopping_ was being set are found here as well.
  reaper.close_all_resting();
  // Asked first: a handler that is still at work may attach a keeper.
  const bool none_open = dispatcher.gauges().open == 0;
  const bool none_kept = keepers.stop();
  dispatcher.spawn_missing();
  return none_kept && !acceptor.alive() && !reaper.alive() && none_open;
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
  // Where the kernel is short of what the wait takes it is tried again: that is no reason to stop.
  for (;;) {
    const auto signal = wait_signal(signals);
    if (signal && *signal != SIGHUP) break;
    if (signal) {
      if (options.on_hangup != nullptr) options.on_hangup(options.context);
    } else if (!sleep(100ms)) {
      break;
    }
  }
  const Deadline deadline = Deadline::after(drain_timeout);
  begin_stop();
  while (!stopped()) {
    const Deadline next = std::min(deadline, Deadline::after(20ms));
    const auto signal = wait_signal(signals, next);
    if (signal && *signal == SIGHUP) continue;
    if (!signal && !deadline.passed() && (signal.error() == ErrorCode::timed_out || sleep(20ms))) continue;
    const std::size_t cut_off = dispatcher.gauges().open;
    shutdown();
    return cut_off;
  }
  return 0;
}

}  // namespace coir::http
