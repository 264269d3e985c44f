#include <coir/budget.h>

#include "schedule/switching.h"
#include "wait/park.h"

namespace coir::detail {

constinit thread_local std::int32_t t_budget = 0;

// spent yields only if this worker has not switched since the last time: a fiber that parks now and then shares its
// worker already, and pays nothing. The counter is the worker's, so that a switch costs nothing for it.
[[gnu::noinline]] COIR_RARELY void spent() noexcept {
  Worker* const worker = this_worker();
  FiberControl* const self = worker == nullptr ? nullptr : worker->current();
  if (self == nullptr) {
    // The worker's own code may not yield: the fiber that comes next does, at its next call.
    __atomic_store_n(&t_budget, worker == nullptr ? INT32_MAX : 0, __ATOMIC_RELAXED);
    return;
  }
  __atomic_store_n(&t_budget, kBudget, __ATOMIC_RELAXED);
  if (worker->has_switched()) return;
  Worker::yield(self);
}

}  // namespace coir::detail
