#include "isolated_run.h"

#include "blocking_pool.h"
#include "board.h"

namespace coir {

std::expected<void, Error> IsolatedRun::start() noexcept {
  scheduler.blocking = detail::make_blocking_pool();
  if (scheduler.blocking == nullptr) return std::unexpected(Error{ErrorCode::no_memory});
  auto started = scheduler.start({.workers = 1}, 1, board::kDefaultStackKb * 1024);
  if (!started) {
    detail::retire_blocking_pool(scheduler.blocking);
    stacks.release();
  }
  return started;
}

void IsolatedRun::finish() noexcept {
  scheduler.finish();
  detail::retire_blocking_pool(scheduler.blocking);
  stacks.release();
}

}  // namespace coir
