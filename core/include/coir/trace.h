#pragma once

// A trace of all fibers, for ui.perfetto.dev.
//
//   if (!tracing()) return complain("this build has no trace");
//   if (auto forgotten = write_trace(fd); !forgotten) return complain(forgotten.error());

#include <coir/port/needs_fibers.h>

#include <cstdint>
#include <expected>

#include <coir/error.h>

namespace coir {

// Tracing is built in by scripts/build --trace (COIR_TRACE); in other builds no line of it is compiled. Each worker
// then keeps its latest state changes of fibers in a ring, and so do all other threads together: spawned, run, parked
// and for what, woken and by whom, yielded, ended; stolen from another worker; the worker idle. Older changes than
// the ring holds are forgotten and counted. The rings are charged to account::trace at the start of a run;
// COIR_TRACE_KB sets the size of each, 256 by default (5,400 events). At the ceiling the run goes on without a trace.
// Isolates are not traced.

// tracing tells whether this build has it.
bool tracing() noexcept;

// write_trace writes what the rings hold to `fd` as a Chrome trace file (JSON), which ui.perfetto.dev and
// chrome://tracing open: one track for each worker with the fibers that it ran and an arrow from each wake to the run
// that it led to, and one for each fiber with its waits. Returns how many events were forgotten. Any fiber and any
// thread while a runtime runs, the workers go on meanwhile; needs 2 KB of stack, allocates nothing, and blocks while
// `fd` does. Errors: unsupported (built without tracing, or no runtime, or no room for the rings), system.
std::expected<std::uint64_t, Error> write_trace(int fd) noexcept;

}  // namespace coir
