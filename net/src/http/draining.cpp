#include <coir/runtime.h>
#include <coir/signal.h>

#include <algorithm>

#include "engine.h"

namespace coir::http {

using namespace std::chrono_literals;

std::size_t Engine::serve_until(std::initializer_list<int> signals, std::chrono::milliseconds drain_timeout) noexcept {
  static_cast<void>(wait_signal(signals));
  const Deadline deadline = Deadline::after(drain_timeout);
  begin_stop();
  while (!stopped()) {
    const Deadline next = std::min(deadline, Deadline::after(20ms));
    const auto signal = wait_signal(signals, next);
    if (!signal && signal.error() == ErrorCode::timed_out && !deadline.passed()) continue;
    const std::size_t cut_off = gauges().open;
    shutdown();
    return cut_off;
  }
  return 0;
}

}  // namespace coir::http
