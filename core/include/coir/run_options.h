#pragma once

// Options that a program fixes before it runs.
//
//   const coir::RunOptions options{.workers = 1, .default_stack = 16 * 1024};

#include <cstddef>
#include <cstdint>

namespace coir {

// RunOptions is what a program fixes before it runs. Zero means: the environment's value, else the board's.
struct RunOptions {
  // Threads that run fibers; else COIR_WORKERS, else as many as there are CPUs that the process may use, 16 at most: by
  // its affinity, and by the CPU quota of its control groups, rounded up. One in single-worker builds.
  unsigned workers = 0;
  std::size_t default_stack = 0;  // bytes, for spawns that name none; else COIR_STACK_KB, else the board's
  bool force_ppoll = false;       // act as on a kernel without epoll
  std::uint32_t hot_stacks = 0;   // unused stacks that each worker keeps resident, per class; else the board's
  bool migrate = false;           // test mode: every wakeup moves the fiber to the next worker
  std::uint64_t seed =
      0;  // test mode: one worker, and a random but repeatable choice among the runnable; else COIR_SEED
};

}  // namespace coir
