#pragma once

namespace coir::detail {

class BlockingPool;

// make_blocking_pool makes the pool of an isolated run, whose Scheduler::blocking it becomes; null: no memory. Its
// threads are started by the run's own thread and inherit what is denied to it.
BlockingPool* make_blocking_pool() noexcept;

// retire_blocking_pool ends it after the run. A call that nobody waits for any more goes on to its end.
void retire_blocking_pool(BlockingPool* pool) noexcept;

}  // namespace coir::detail
