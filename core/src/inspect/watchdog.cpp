#include "inspect/watchdog.h"

#include <coir/config.h>

#if COIR_WATCHDOG

#include "inspect/kept_workers.h"
#include "inspect/watch_thread.h"

namespace coir {

namespace {

struct Watchdog {
  const Scheduler* scheduler = nullptr;
  std::int64_t threshold_ns = 0;
  KeptWorkers kept;
  WatchThread thread;
};
constinit Watchdog g_watchdog{};

std::int64_t watch(void*) noexcept {
  g_watchdog.kept.look(*g_watchdog.scheduler, g_watchdog.threshold_ns, KeptWorkers::Starved::is_spared);
  return g_watchdog.threshold_ns / 4;
}

}  // namespace

void watchdog_begin(Scheduler& scheduler, std::chrono::milliseconds threshold) noexcept {
  if (threshold.count() == 0) return;
  g_watchdog.scheduler = &scheduler;
  g_watchdog.threshold_ns = threshold.count() * 1'000'000;
  g_watchdog.kept.forget();
  static_cast<void>(g_watchdog.thread.start(watch, nullptr));
}

void watchdog_end() noexcept {
  g_watchdog.thread.stop();
}

}  // namespace coir

#endif
