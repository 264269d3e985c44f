#pragma once

#include <cstddef>
#include <cstdint>

#include <coir/config.h>

#include "fiber/control.h"

namespace coir {

class Worker;

// TraceKind is a change of a fiber's state, or of a worker's.
enum class TraceKind : std::uint8_t { spawned, run, parked, yielded, ended, woken, stolen, idle };

#if COIR_TRACE
// trace_begin makes the rings of a run, `ring_bytes` each; where the ledger or the machine has no room for them there
// are none. trace_end gives them back, when no fiber runs any more.
void trace_begin(unsigned workers, std::size_t ring_bytes) noexcept;
void trace_end() noexcept;

// The thread that makes the change calls these. `worker` is the caller's, null for plain threads.
void trace_spawned(Worker* worker, FiberControl* fiber) noexcept;
void trace_run(Worker* worker, FiberControl* fiber) noexcept;
void trace_left(Worker* worker, FiberControl* fiber) noexcept;  // parked, yielded or ended, by its state
void trace_woken(Worker* worker, FiberControl* fiber) noexcept;
void trace_stolen(Worker* worker, const FiberControl* fiber) noexcept;
std::int64_t trace_idle_from() noexcept;
void trace_idle(Worker* worker, std::int64_t from_ns) noexcept;
#else
inline void trace_begin(unsigned, std::size_t) noexcept {}
inline void trace_end() noexcept {}
inline void trace_spawned(Worker*, FiberControl*) noexcept {}
inline void trace_run(Worker*, FiberControl*) noexcept {}
inline void trace_left(Worker*, FiberControl*) noexcept {}
inline void trace_woken(Worker*, FiberControl*) noexcept {}
inline void trace_stolen(Worker*, const FiberControl*) noexcept {}
inline std::int64_t trace_idle_from() noexcept {
  return 0;
}
inline void trace_idle(Worker*, std::int64_t) noexcept {}
#endif

}  // namespace coir
