#include <coir/runtime.h>

#include "blocking/blocking_pool.h"
#include "schedule/scheduler.h"

namespace coir {

RuntimeStats stats() noexcept {
  const Visit run;
  if (!run) return {};
  RuntimeStats told = run->stats();
  const detail::BlockingPool& pool = run->blocking != nullptr ? *run->blocking : detail::g_blocking_pool;
  const detail::BlockingPool::Load load = pool.load();
  told.blocking_running = load.running;
  told.blocking_waiting = load.waiting;
  told.blocking_waited = load.waited;
  return told;
}

}  // namespace coir
