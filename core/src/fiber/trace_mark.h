#pragma once

#include <cstdint>

#include <coir/config.h>

namespace coir {

// Tracing is chosen when coir is built (COIR_TRACE): without it TraceMark is empty, and so is every function of
// trace.h.
#if COIR_TRACE
inline constexpr bool kTracing = true;

// TraceMark is what tracing keeps with a fiber. The fiber writes `since_ns` before it parks, and its waker writes
// `flow`; the claim of the wait orders the first before the second, and the run queue both before the next run.
struct TraceMark {
  std::int64_t since_ns;  // when it parked
  std::uint64_t flow;     // the number of the wake that made it runnable; 0 for none
  std::uint16_t name;     // its name's place in the table of names
};
#else
inline constexpr bool kTracing = false;
struct TraceMark {};
#endif

}  // namespace coir
