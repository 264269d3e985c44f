#include "isolate/isolated_run.h"

#include <coir/port/limits.h>

#include "blocking/blocking_pool.h"

namespace coir {

std::expected<void, Error> IsolatedRun::start() noexcept {
  scheduler.blocking = detail::BlockingPool::make();
  if (scheduler.blocking == nullptr) return std::unexpected(Error{ErrorCode::no_memory});
  auto started = scheduler.start({.workers = 1}, 1, port::kDefaultStackKb * 1024);
  if (!started) {
    scheduler.blocking->retire();
    stacks.release();
  }
  return started;
}

void IsolatedRun::finish() noexcept {
  scheduler.finish();
  scheduler.blocking->retire();
  stacks.release();
}

}  // namespace coir
