#pragma once

#include <expected>

#include <coir/error.h>

#include "fiber/stack_pool.h"
#include "schedule/scheduler.h"

namespace coir {

// IsolatedRun is a run on the calling thread alone, beside the process's: a scheduler of one worker with stacks and a
// pool for blocking calls of its own. No fiber, timer or descriptor of one run is ever seen by another.
//
//   start()             the thread belongs to it: spawn makes its first fiber
//   scheduler.run()     returns when its last fiber has ended
//   finish()            after a start that succeeded
struct IsolatedRun {
  // Errors: no_memory, system.
  std::expected<void, Error> start() noexcept;
  void finish() noexcept;

  StackPool stacks;
  Scheduler scheduler{stacks};
};

}  // namespace coir
