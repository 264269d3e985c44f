#pragma once

// Runs fibers until none is left.
//
//   int main() {
//     return coir::run({.workers = 2}, [] {
//       coir::spawn([] { show("it runs"); }).detach();
//     });
//   }

#include <coir/port/needs_fibers.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <source_location>
#include <type_traits>
#include <utility>

#include <coir/deadline.h>
#include <coir/detail/outcome.h>
#include <coir/error.h>
#include <coir/run_options.h>

namespace coir {

// RuntimeStats is a snapshot; counters of other workers may lag by a few events.
struct RuntimeStats {
  std::uint64_t fibers_alive, fibers_spawned, switches, steals, polls;
  std::uint64_t stacks_used;     // slots ever used, all classes
  std::uint64_t stacks_guarded;  // of these, with a guard of their own
  std::uint64_t stacks_pooled;   // hot and unused
  std::uint32_t workers, timers_armed, fd_waits;
  std::uint32_t blocking_running;  // calls of coir/blocking.h that a thread runs
  std::uint32_t blocking_waiting;  // that wait for one
  std::uint64_t blocking_waited;   // that ever had to, for all threads were taken
  const char* guard_mode;          // "advice", "protect" or "group": the weakest in use
  const char* poller;              // "epoll" or "ppoll"
};

namespace detail {
std::expected<void, Error> run_erased(const RunOptions& options, std::expected<void, Error> (*body)(void*),
                                      void* argument, const std::source_location& where) noexcept;
// run_reported says on standard error how the run ended, and returns the exit status: 0, 1 or 2.
int run_reported(const RunOptions& options, std::expected<void, Error> (*body)(void*), void* argument,
                 const std::source_location& where) noexcept;
}  // namespace detail

// run_until_idle starts the runtime on the calling thread and further workers, runs `body` as the first fiber ("main"),
// and returns when no fiber is left and no resting wait is armed. One at a time in a process; from a plain thread. The
// body may return a std::expected<T, Error>, as every fiber's. Errors: the first failure of a fiber that nobody handled
// (every fiber was then cancelled; see coir/nursery.h), deadlock (every parked fiber was listed on standard error, then
// cancelled and drained), invalid (a bad value in the environment; one line names it), busy (a runtime runs already),
// unsupported (the kernel keeps a shadow stack for this process), limit, no_memory, system.
template <class F>
[[nodiscard]] std::expected<void, Error> run_until_idle(
    const RunOptions& options, F&& body, const std::source_location& where = std::source_location::current()) {
  using Body = std::remove_reference_t<F>;
  return detail::run_erased(
      options, [](void* argument) { return detail::failure_of(*static_cast<Body*>(argument)); },
      const_cast<std::remove_const_t<Body>*>(&body), where);
}

// run is run_until_idle for main(): it returns the exit status, which is the body's if it returns an int, 0 otherwise;
// 1 when the runtime could not start, or ended in a deadlock or with a failure, and a line on standard error names the
// fiber that failed; 2 for a bad value in the environment.
template <class F>
int run(const RunOptions& options, F&& body, const std::source_location& where = std::source_location::current()) {
  int status = 0;
  const auto counted = [&]() -> std::expected<void, Error> {
    if constexpr (std::is_convertible_v<std::invoke_result_t<F&>, int>) {
      status = body();
      return {};
    } else {
      return detail::failure_of(body);
    }
  };
  const int failed = detail::run_reported(
      options, [](void* argument) { return (*static_cast<decltype(counted)*>(argument))(); },
      const_cast<void*>(static_cast<const void*>(&counted)), where);
  return failed != 0 ? failed : status;
}
template <std::invocable F>
int run(F&& body, const std::source_location& where = std::source_location::current()) {
  return run(RunOptions{}, std::forward<F>(body), where);
}

// shutdown cancels every fiber, and every one that is spawned later at its start: waits return `cancelled`, cleanup
// runs, and the run ends when the last fiber has. Idempotent. From a fiber.
void shutdown() noexcept;

// stats, in stats.cpp, describes the runtime of this process; all zero when none runs. Any thread.
RuntimeStats stats() noexcept;

}  // namespace coir
