#include <stdio.h>
#include <unistd.h>

#include <coir/runtime.h>

#include "scheduler.h"

namespace coir {

namespace {

const char* state_name(FiberControl::State state) noexcept {
  constexpr const char* kNames[] = {"free", "runnable", "running", "parked", "ended"};
  return kNames[static_cast<int>(state)];
}

// describe_wait says in words what a parked fiber waits for.
void describe_wait(const FiberControl& fiber, char* into, std::size_t bytes) noexcept {
  const auto object = static_cast<long long>(fiber.wait_object.load(std::memory_order_relaxed));
  switch (fiber.wait_kind.load(std::memory_order_relaxed)) {
    case WaitKind::nothing:
      into[0] = '\0';
      break;
    case WaitKind::readable:
      snprintf(into, bytes, " waits for fd %lld to be readable", object);
      break;
    case WaitKind::writable:
      snprintf(into, bytes, " waits for fd %lld to be writable", object);
      break;
    case WaitKind::sleep:
      if (object == INT64_MAX) {
        snprintf(into, bytes, " sleeps for ever");
      } else {
        snprintf(into, bytes, " sleeps");
      }
      break;
    case WaitKind::join:
      snprintf(into, bytes, " joins fiber %lld", object);
      break;
    case WaitKind::signal:
      snprintf(into, bytes, " waits for a signal");
      break;
    case WaitKind::blocking:
      snprintf(into, bytes, " waits for a blocking call");
      break;
  }
}

void write_fiber(const FiberControl& fiber, int fd) noexcept {
  char wait[80];
  describe_wait(fiber, wait, sizeof wait);
  const std::source_location where = fiber.where.load(std::memory_order_relaxed);
  char line[320];
  const int length =
      snprintf(line, sizeof line, "coir:   fiber %llu \"%s\" %s%s; spawned at %s:%u\n",
               static_cast<unsigned long long>(fiber.id.load(std::memory_order_relaxed)),
               fiber.name.load(std::memory_order_relaxed), state_name(fiber.state.load(std::memory_order_relaxed)),
               wait, where.file_name(), where.line());
  const auto bytes =
      static_cast<std::size_t>(length) < sizeof line ? static_cast<std::size_t>(length) : sizeof line - 1;
  [[maybe_unused]] const ssize_t n = write(fd, line, bytes);
}

void write_fibers(const Scheduler& scheduler, int fd) noexcept {
  scheduler.stacks.for_each([fd](const FiberControl& fiber) {
    const FiberControl::State state = fiber.state.load(std::memory_order_acquire);
    if (state != FiberControl::State::free && state != FiberControl::State::ended) write_fiber(fiber, fd);
  });
}

}  // namespace

void report_deadlock(const Scheduler& scheduler) noexcept {
  fprintf(stderr,
          "coir: deadlock: nothing is runnable, no timer is armed and no descriptor is waited on; %lld parked:\n",
          static_cast<long long>(scheduler.alive()));
  write_fibers(scheduler, STDERR_FILENO);
}

void dump_fibers(int fd) noexcept {
  if (const Scheduler* const scheduler = Scheduler::current(); scheduler != nullptr) write_fibers(*scheduler, fd);
}

}  // namespace coir
