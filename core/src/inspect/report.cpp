#include <unistd.h>

#include "base/line.h"
#include "fiber/describe.h"
#include "schedule/scheduler.h"

namespace coir {

void report_deadlock(const Scheduler& scheduler) noexcept {
  Line line;
  line.text("coir: deadlock: nothing is runnable, no timer is armed and no descriptor is waited on; ");
  line.number(static_cast<std::uint64_t>(scheduler.alive())).text(" parked:\n").send(STDERR_FILENO);
  scheduler.stacks.for_each([](const FiberControl& fiber) {
    const FiberControl::State state = fiber.state.load(std::memory_order_acquire);
    if (state == FiberControl::State::free || state == FiberControl::State::ended) return;
    write_description(fiber, STDERR_FILENO);
  });
}

void report_held_mutexes(const FiberControl& fiber) noexcept {
  Line line;
  write_name(name_of(fiber), line.text("coir: "));
  line.text(", ended with ").number(fiber.mutexes_held).text(fiber.mutexes_held == 1 ? " mutex" : " mutexes");
  line.text(" still locked\n").send(STDERR_FILENO);
}

}  // namespace coir
