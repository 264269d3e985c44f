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
    case WaitKind::mutex:
      snprintf(into, bytes, object != 0 ? " waits for a mutex that fiber %lld holds" : " waits for a mutex", object);
      break;
    case WaitKind::condition:
      snprintf(into, bytes, " waits for a condition");
      break;
    case WaitKind::semaphore:
      snprintf(into, bytes, " waits for %lld of a semaphore", object);
      break;
    case WaitKind::event:
      snprintf(into, bytes, " waits for an event");
      break;
    case WaitKind::wait_group:
      snprintf(into, bytes, " waits for a wait group");
      break;
    case WaitKind::once:
      snprintf(into, bytes, " waits for what is done once");
      break;
    case WaitKind::shared_lock:
      snprintf(into, bytes, " waits to read under a lock");
      break;
    case WaitKind::exclusive_lock:
      snprintf(into, bytes, " waits to write under a lock");
      break;
    case WaitKind::receive:
      snprintf(into, bytes, " waits to receive");
      break;
    case WaitKind::send:
      snprintf(into, bytes, " waits to send");
      break;
    case WaitKind::select:
      snprintf(into, bytes, " waits for one of %lld cases", object);
      break;
    case WaitKind::nursery:
      snprintf(into, bytes, " waits for %lld children", object);
      break;
    case WaitKind::job:
      snprintf(into, bytes, " waits for a job");
      break;
    case WaitKind::backlog:
      snprintf(into, bytes, " waits for room in a pool's backlog");
      break;
    case WaitKind::admission:
      snprintf(into, bytes, " waits to spawn, %lld children are the limit", object);
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

void report_held_mutexes(const FiberControl& fiber) noexcept {
  const std::source_location where = fiber.where.load(std::memory_order_relaxed);
  fprintf(stderr, "coir: fiber %llu \"%s\", spawned at %s:%u, ended with %u mutex%s still locked\n",
          static_cast<unsigned long long>(fiber.id.load(std::memory_order_relaxed)),
          fiber.name.load(std::memory_order_relaxed), where.file_name(), where.line(), fiber.mutexes_held,
          fiber.mutexes_held == 1 ? "" : "es");
}

void dump_fibers(int fd) noexcept {
  if (const Scheduler* const scheduler = Scheduler::current(); scheduler != nullptr) write_fibers(*scheduler, fd);
}

}  // namespace coir
