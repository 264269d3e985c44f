#pragma once

#include <coir/cancel_scope.h>
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
// what is left after `drain_timeout`, at a second signal or when the caller is cancelled. A deadline around the caller
// ends the first wait; the drain is let end. Returns what cut_off does. Fiber or thread.
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
    if (deadline.passed() || cancelled()) return engine.cut_off();
    const Deadline next = std::min(deadline, Deadline::after(20ms));
    const Shield shield(next);
    const auto signal = wait_signal(signals, next);
    if (signal && *signal != SIGHUP) return engine.cut_off();
    if (!signal) static_cast<void>(sleep_until(next));  // where the kernel is short, it has failed at once
  }
  return 0;
}

}  // namespace coir::http
