#include <coir/runtime.h>

#include <algorithm>

#include "blocking/blocking_pool.h"
#include "schedule/scheduler.h"

namespace coir {

namespace {

// count sums the workers' counters.
RuntimeStats count(const Scheduler& scheduler) noexcept {
  RuntimeStats out{};
  out.workers = scheduler.worker_count();
  out.fibers_alive = static_cast<std::uint64_t>(scheduler.alive());
  out.fibers_spawned = scheduler.outside_spawned.load(std::memory_order_relaxed);
  std::int64_t fd_waits = 0;
  for (unsigned i = 0; i < scheduler.worker_count(); ++i) {
    const Worker& worker = scheduler.worker(i);
    out.fibers_spawned += worker.counters.spawned.load(std::memory_order_relaxed);
    out.switches += worker.counters.switches.load(std::memory_order_relaxed);
    out.steals += worker.counters.steals.load(std::memory_order_relaxed);
    out.polls += worker.counters.polls.load(std::memory_order_relaxed);
    out.stacks_pooled += worker.stacks().pooled();
    out.timers_armed += worker.wheel().armed();
    fd_waits += worker.counters.fd_waits.load(std::memory_order_relaxed);
  }
  out.fd_waits = fd_waits < 0 ? 0 : static_cast<std::uint32_t>(fd_waits);
  GuardMode weakest = GuardMode::advice;
  for (std::size_t i = 0; i < kStackClassCount; ++i) {
    const StackArena& arena = scheduler.stacks.arena(i);
    out.stacks_used += arena.used();
    // An earlier run may have left guards beyond what this one uses.
    out.stacks_guarded += std::min(arena.guarded(), arena.used());
    if (arena.used() != 0 && arena.guard_mode() > weakest) weakest = arena.guard_mode();
  }
  constexpr const char* kModes[] = {"advice", "protect", "group"};
  out.guard_mode = kModes[static_cast<int>(weakest)];
  out.poller = scheduler.reactor.fell_back() ? "ppoll" : "epoll";
  return out;
}

}  // namespace

RuntimeStats stats() noexcept {
  const Visit run;
  if (!run) return {};
  RuntimeStats told = count(*run);
  const detail::BlockingPool& pool = run->blocking != nullptr ? *run->blocking : detail::g_blocking_pool;
  const detail::BlockingPool::Load load = pool.load();
  told.blocking_running = load.running;
  told.blocking_waiting = load.waiting;
  told.blocking_waited = load.waited;
  return told;
}

}  // namespace coir
