#pragma once

#include <coir/deadline.h>
#include <coir/fiber.h>
#include <coir/http/server.h>
#include <coir/signal.h>
#include <signal.h>

#include <algorithm>
#include <cstddef>
#include <initializer_list>

namespace coir::http {

// until_signal waits for one of `signals` while others serve, and then ends the engine: begin_stop, and cut_off for
// what is left after `drain_timeout` or at a second signal. Returns what cut_off does. Fiber or thread.
template <class Engine>
std::size_t until_signal(Engine& engine, std::initializer_list<int> signals,
                         std::chrono::milliseconds drain_timeout) noexcept {
  using namespace std::chrono_literals;
  const ServerOptions& options = engine.options;
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
  if (options.on_stop != nullptr) options.on_stop(options.context);
  engine.begin_stop();
  while (!engine.stopped()) {
    const Deadline next = std::min(deadline, Deadline::after(20ms));
    const auto signal = wait_signal(signals, next);
    if (signal && *signal == SIGHUP) continue;
    if (!signal && !deadline.passed() && (signal.error() == ErrorCode::timed_out || sleep(20ms))) continue;
    return engine.cut_off();
  }
  return 0;
}

}  // namespace coir::http
