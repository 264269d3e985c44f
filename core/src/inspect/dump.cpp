#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include <coir/inspect.h>
#include <coir/port/memory.h>

#include <algorithm>

#include "base/line.h"
#include "blocking/blocking_pool.h"
#include "fiber/describe.h"
#include "fiber/paint.h"
#include "inspect/sample.h"
#include "schedule/tick.h"
#include "wait/park.h"

namespace coir {

namespace {

// info_of reads a slot of the given class; the caller has looked at its state.
FiberInfo info_of(const FiberControl& fiber, FiberControl::State state, std::size_t stack_class) noexcept {
  FiberInfo info;
  info.id = fiber.id.load(std::memory_order_relaxed);
  info.parent = fiber.parent_id.load(std::memory_order_relaxed);
  info.name = fiber.name.load(std::memory_order_relaxed);
  if (info.name == nullptr) info.name = "?";  // it has ended meanwhile, and its pages were freed
  info.where = fiber.where.load(std::memory_order_relaxed);
  info.state = state == FiberControl::State::parked    ? FiberState::parked
               : state == FiberControl::State::running ? FiberState::running
                                                       : FiberState::runnable;
  if (state == FiberControl::State::parked) {
    info.waits_for = wait_name(fiber.wait_kind.load(std::memory_order_relaxed));
    info.wait_object = fiber.wait_object.load(std::memory_order_relaxed);
    info.waited = std::chrono::nanoseconds(ns_since(fiber.since.load(std::memory_order_relaxed)));
  }
  info.stack_bytes = nominal_stack_bytes(stack_class) * kStackInflation;
  info.stack_peak_bytes = painted_peak(&fiber);
  info.stack_measured = info.stack_peak_bytes != 0;
  if (!info.stack_measured) {
    info.stack_peak_bytes = port::resident_bytes(
        StackArena::low_end(const_cast<FiberControl*>(&fiber), info.stack_bytes), info.stack_bytes);
  }
  return info;
}

bool lives(FiberControl::State state) noexcept {
  return state != FiberControl::State::free && state != FiberControl::State::ended &&
         state != FiberControl::State::failed;
}

// visit_fibers calls visit(control, state, stack class) for each fiber that lives.
template <class Visit>
void visit_fibers(const Scheduler& scheduler, Visit visit) noexcept {
  for (std::size_t i = 0; i < kStackClassCount; ++i) {
    scheduler.stacks.arena(i).for_each([&](const FiberControl& fiber) {
      const FiberControl::State state = fiber.state.load(std::memory_order_acquire);
      if (lives(state)) visit(fiber, state, i);
    });
  }
}

// trace_running asks the worker that runs the fiber; the caller's own fiber it walks itself. `at`: the caller is a
// signal handler that interrupted this place.
[[gnu::noinline]] bool trace_running(Scheduler& scheduler, const FiberControl& fiber, const port::Interrupted* at,
                                     Backtrace& trace) noexcept {
  if (const Worker* const own = this_worker(); own != nullptr && own->current() == &fiber) {
    at != nullptr ? trace.of_interrupted(fiber, *at) : trace.of_caller(fiber);
    return trace.count != 0;
  }
  for (unsigned i = 0; i < scheduler.worker_count(); ++i) {
    const Worker& worker = scheduler.worker(i);
    if (worker.peek() != &fiber) continue;
    Sample seen;
    if (!sample(worker, seen) || seen.fiber_id != fiber.id.load(std::memory_order_relaxed)) return false;
    trace = seen.trace;
    return true;
  }
  return trace.of_parked(fiber);  // it has just stopped running
}

// write_details writes the lines that follow a fiber's first one.
[[gnu::noinline]] void write_details(const FiberInfo& info, int fd) noexcept {
  Line line;
  line.text("coir:     ");
  if (info.state == FiberState::parked) line.text("for ").seconds(info.waited.count()).text(" s, ");
  if (info.parent != 0) line.text("child of fiber ").number(info.parent).text(", ");
  line.number(info.stack_peak_bytes).text(" of ").number(info.stack_bytes).text(" bytes of stack ");
  line.text(info.stack_measured ? "used\n" : "resident\n").send(fd);
}

// calls_of finds a fiber's calls. Not inlined: a backtrace is not to be on the stack of a caller that wants none.
[[gnu::noinline]] FiberCalls calls_of(Scheduler& scheduler, const FiberControl& fiber,
                                      FiberControl::State state) noexcept {
  Backtrace trace;
  FiberCalls found;
  const bool known =
      state == FiberControl::State::running ? trace_running(scheduler, fiber, nullptr, trace) : trace.of_parked(fiber);
  if (!known) return found;
  const auto addresses = trace.link_addresses();
  found.count = std::min(addresses.size(), FiberCalls::kMost);
  std::copy_n(addresses.begin(), found.count, found.calls);
  return found;
}

void write_untraced(int fd) noexcept {
  constexpr char kWhy[] = "coir:     no backtrace: it runs on, or its code keeps no frame pointers\n";
  [[maybe_unused]] const ssize_t n = write(fd, kWhy, sizeof kWhy - 1);
}

// write_blocking reports calls that wait for a thread: their fibers wait because of that.
void write_blocking(const Scheduler& scheduler, int fd) noexcept {
  const detail::BlockingPool& pool = scheduler.blocking != nullptr ? *scheduler.blocking : detail::g_blocking_pool;
  const detail::BlockingPool::Load load = pool.load();
  if (load.waiting == 0) return;
  Line line;
  line.text("coir: ").number(load.waiting).text(" blocking calls wait for a thread: ");
  line.number(load.running).text(" run\n").send(fd);
}

void dump(Scheduler& scheduler, int fd, const port::Interrupted* at) noexcept {
  write_blocking(scheduler, fd);
  visit_fibers(scheduler, [&](const FiberControl& fiber, FiberControl::State state, std::size_t stack_class) {
    write_description(fiber, fd);
    write_details(info_of(fiber, state, stack_class), fd);
    Backtrace trace;
    if (state == FiberControl::State::running ? trace_running(scheduler, fiber, at, trace) : trace.of_parked(fiber)) {
      trace.write(fd);
    } else {
      write_untraced(fd);
    }
  });
  scheduler.stacks.for_each([fd](const FiberControl& fiber) {
    if (fiber.state.load(std::memory_order_acquire) == FiberControl::State::failed) write_description(fiber, fd);
  });
}

constinit SharedAtomic<int> g_dump_fd{2};

void on_dump(int, siginfo_t*, void* context) noexcept {
  const int saved = errno;
  const int fd = g_dump_fd.load(std::memory_order_relaxed);
  const port::Interrupted at = port::interrupted_at(context);
  if (const Visit run; run) {
    Line line;
    line.text("coir: ").number(static_cast<std::uint64_t>(run->alive())).text(" fibers, ");
    line.number(run->worker_count()).text(" workers\n").send(fd);
    dump(*run, fd, &at);
  }
  errno = saved;
}

}  // namespace

std::expected<FiberInfo, Error> inspect(const FiberRef& wanted) noexcept {
  std::expected<FiberInfo, Error> found = std::unexpected(Error{ErrorCode::stale});
  if (const Visit run; run && wanted.id() != 0) {
    visit_fibers(*run, [&](const FiberControl& fiber, FiberControl::State state, std::size_t stack_class) {
      if (fiber.id.load(std::memory_order_relaxed) == wanted.id()) found = info_of(fiber, state, stack_class);
    });
  }
  return found;
}

std::size_t list_fibers(std::span<FiberInfo> into, std::span<FiberCalls> calls) noexcept {
  std::size_t count = 0;
  if (const Visit run; run) {
    visit_fibers(*run, [&](const FiberControl& fiber, FiberControl::State state, std::size_t stack_class) {
      if (count < into.size()) into[count] = info_of(fiber, state, stack_class);
      if (count < std::min(into.size(), calls.size())) calls[count] = calls_of(*run, fiber, state);
      ++count;
    });
  }
  return count;
}

void dump_fibers(int fd) noexcept {
  if (const Visit run; run) dump(*run, fd, nullptr);
}

std::expected<void, Error> dump_fibers_on(int signal, int fd) noexcept {
  g_dump_fd.store(fd, std::memory_order_relaxed);
  struct sigaction action{};
  action.sa_sigaction = on_dump;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigemptyset(&action.sa_mask);
  if (sigaction(signal, &action, nullptr) != 0) return std::unexpected(Error::from_errno(errno));
  return {};
}

}  // namespace coir
