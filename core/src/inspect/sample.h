#pragma once

#include "inspect/backtrace.h"
#include "schedule/worker.h"

namespace coir {

// Sample is what a worker's thread was doing at the moment it was asked.
struct Sample {
  std::uint64_t fiber_id;  // 0: none, the worker was looking for work
  Backtrace trace;
};

// sample interrupts the worker's thread by a signal (SIGURG, which nobody minds who does not ask for it) and writes
// down where it is. False: there was no answer in time, or somebody else samples. The caller waits for a second at
// most, with no lock held. Async-signal-safe. A call to the kernel that is not restarted after a signal ends with
// EINTR.
bool sample(const Worker& worker, Sample& into) noexcept;

}  // namespace coir
