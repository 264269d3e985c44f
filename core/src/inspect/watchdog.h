#pragma once

#include <coir/config.h>
#include <coir/deadline.h>

namespace coir {

class Scheduler;

// In debug builds, and with COIR_WATCHDOG, a thread beside the workers looks every quarter of the threshold whether
// each has switched since. A fiber that keeps its worker for longer (COIR_WATCHDOG_MS, 100 by default, 0 for never) is
// named on standard error with its backtrace, once until it switches: as computing, if its thread has had the
// processor, or as blocked in a call to the kernel, if the thread sleeps. A thread that wants to run and may not is
// waited for.
//
// The backtrace is taken by a signal (see sample.h): a call to the kernel that is not restarted after one is cut short.
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
