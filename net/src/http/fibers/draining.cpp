#include <coir/fiber.h>
#include <coir/runtime.h>
#include <coir/signal.h>
#include <signal.h>

#include <algorithm>

#include "http/fibers/fiber_engine.h"

namespace coir::http {

using namespace std::chrono_literals;

std::size_t FiberEngine::serve_until(std::initializer_list<int> signals,
                                     std::chrono::milliseconds drain_timeout) noexcept {
  // Where the kernel lacks what the wait takes it is tried again: that is no reason to stop.
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
    const std::size_t cut_off = gauges().open;
    shutdown();
    return cut_off;
  }
  return 0;
}

}  // namespace coir::http
