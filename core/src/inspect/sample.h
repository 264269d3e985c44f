#pragma once

#include "inspect/backtrace.h"
#include "schedule/worker.h"

namespace coir {

// Sample is what a worker's thread was doing at the moment it was asked.
struct Sample {
  std::uint64_t fiber_id;  // 0: none, the worker was looking for work
  Backtrace trace;         // the innermost place alone, if the fiber was in on_worker_stack
};

// sample interrupts the worker's thread by a signal (SIGURG, which is ignored by default) and records where it is.
// False: no answer came in time, or another thread is sampling. The caller waits for a second at most, with no lock
// held. Async-signal-safe. A system call that is not restarted after a signal ends with EINTR.
bool sample(const Worker& worker, Sample& into) noexcept;

}  // namespace coir
