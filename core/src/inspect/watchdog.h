#pragma once

#include <coir/config.h>
#include <coir/deadline.h>

namespace coir {

class Scheduler;

// In debug builds, and with COIR_WATCHDOG, a thread beside the workers checks every quarter of the threshold whether
// each worker has switched. If a fiber keeps its worker for longer (COIR_WATCHDOG_MS, 100 by default, 0 for never), the
// watchdog names it as KeptWorkers says. A thread that is runnable but not running is not reported.
#if COIR_WATCHDOG
// watchdog_begin starts the thread, which looks after the workers of a run until watchdog_end.
inline constexpr bool kWatchdog = true;
void watchdog_begin(Scheduler& scheduler, std::chrono::milliseconds threshold) noexcept;
void watchdog_end() noexcept;
#else
inline constexpr bool kWatchdog = false;
inline void watchdog_begin(Scheduler&, std::chrono::milliseconds) noexcept {}
inline void watchdog_end() noexcept {}
#endif

}  // namespace coir
