#include <stdio.h>
#include <unistd.h>

#include "base/line.h"
#include "fiber/describe.h"
#include "schedule/scheduler.h"

namespace coir {

void report_deadlock(const Scheduler& scheduler) noexcept {
  fprintf(stderr,
          "coir: deadlock: nothing is runnable, no timer is armed and no descriptor is waited on; %lld parked:\n",
          static_cast<long long>(scheduler.alive()));
  scheduler.stacks.for_each([](const FiberControl& fiber) {
    const FiberControl::State state = fiber.state.load(std::memory_order_acquire);
    if (state == FiberControl::State::free || state == FiberControl::State::ended) return;
    write_description(fiber, STDERR_FILENO);
  });
}

void report_held_mutexes(const FiberControl& fiber) noexcept {
  const std::source_location where = fiber.where.load(std::memory_order_relaxed);
  Line()
      .add("coir: fiber ", fiber.id.load(std::memory_order_relaxed), " \"", fiber.name.load(std::memory_order_relaxed),
           "\", spawned at ", where.file_name(), ":", where.line(), ", ended with ", fiber.mutexes_held,
           fiber.mutexes_held == 1 ? " mutex" : " mutexes", " still locked\n")
      .send(STDERR_FILENO);
}

}  // namespace coir
