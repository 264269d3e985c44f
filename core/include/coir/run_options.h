#pragma once

#include <cstddef>
#include <cstdint>

namespace coir {

// RunOptions is what a program fixes before it runs. Zero means: the environment's value, else the board's.
struct RunOptions {
  unsigned workers = 0;  // threads that run fibers; else COIR_WORKERS, else min(cpus, 16). One in single-worker builds.
  std::size_t default_stack = 0;  // bytes, for spawns that name none; else COIR_STACK_KB, else the board's
  bool force_ppoll = false;       // act as on a kernel without epoll
  std::uint32_t hot_stacks = 0;   // unused stacks that each worker keeps resident, per class; else the board's
  bool migrate = false;           // test mode: every wakeup moves the fiber to the next worker
  std::uint64_t seed =
      0;  // test mode: one worker, and a random but repeatable choice among the runnable; else COIR_SEED
};

}  // namespace coir
