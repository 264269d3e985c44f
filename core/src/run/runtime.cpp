#include <coir/runtime.h>

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <new>

#include <coir/fiber.h>
#include <coir/port/cpu_quota.h>
#include <coir/port/limits.h>
#include <coir/port/memory.h>

#include "base/line.h"
#include "fiber/describe.h"
#include "inspect/watchdog.h"
#include "schedule/scheduler.h"
#include "schedule/trace.h"

namespace coir {

namespace {

// read_environment reads a whole number. Unset leaves `value` alone; anything else but `from`..`to` is reported in one
// line.
bool read_environment(const char* name, std::uint64_t from, std::uint64_t to, std::uint64_t& value) noexcept {
  const char* text = getenv(name);
  if (text == nullptr) return true;
  const char* const end = text + strlen(text);
  std::uint64_t number = 0;
  const auto parsed = std::from_chars(text, end, number);
  if (text == end || parsed.ec != std::errc{} || parsed.ptr != end || number < from || number > to) {
    Line line;
    line.add("coir: ", name, "=", text, ": not a whole number from ", from, " to ", to, "\n").send(STDERR_FILENO);
    return false;
  }
  value = number;
  return true;
}

// usable_cpus is how many CPUs this process may run on, but no more than its control groups grant it the time of.
unsigned usable_cpus() noexcept {
  if constexpr (!kManyWorkers) return 1;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  const auto allowed = static_cast<unsigned>(CPU_COUNT(&set));
  const unsigned granted = port::cpu_quota();
  return granted != 0 ? std::min(allowed, granted) : allowed;
}

using RunBody = std::expected<void, Error> (*)(void*);

// run_named is run_erased that also tells whose failure ended the run.
std::expected<void, Error> run_named(const RunOptions& asked, RunBody body, void* argument,
                                     const std::source_location& where, detail::FiberName& failed) noexcept {
  RunOptions options = asked;
  constexpr unsigned most = kManyWorkers ? Scheduler::kMaxWorkers : 1;
  const unsigned cores = port::board_cores() != 0 ? std::min(port::board_cores(), 16u) : 16u;
  std::uint64_t workers = std::clamp(usable_cpus(), 1u, kManyWorkers ? cores : 1u);
  std::uint64_t stack_kb = port::kDefaultStackKb;
  std::uint64_t seed = 0;
  std::uint64_t trace_kb = 256;
  std::uint64_t watchdog_ms = 100;
  std::uint64_t debug = 0;  // fallback.cpp reads it
  if (!read_environment("COIR_WORKERS", 1, most, workers) || !read_environment("COIR_STACK_KB", 8, 64, stack_kb) ||
      !read_environment("COIR_SEED", 0, UINT64_MAX, seed) || !read_environment("COIR_DEBUG", 0, 1, debug) ||
      (kTracing && !read_environment("COIR_TRACE_KB", 4, 1 << 20, trace_kb)) ||
      (kWatchdog && !read_environment("COIR_WATCHDOG_MS", 0, 1'000'000, watchdog_ms))) {
    return std::unexpected(Error{ErrorCode::invalid});
  }
  if (options.workers != 0) workers = std::min(options.workers, most);
  if (options.seed == 0) options.seed = seed;
  if (options.seed != 0) workers = 1;
  const std::size_t stack =
      options.default_stack != 0 ? options.default_stack : static_cast<std::size_t>(stack_kb) * 1024;

  if (port::shadow_stack_active()) return std::unexpected(Error{ErrorCode::unsupported});
  void* const place = port::reserve(sizeof(Scheduler));
  if (place == nullptr) return std::unexpected(Error{ErrorCode::no_memory});
  auto* const scheduler = new (place) Scheduler;
  std::expected<void, Error> outcome = scheduler->start(options, static_cast<unsigned>(workers), stack);
  if (outcome) {
    trace_begin(scheduler->worker_count(), static_cast<std::size_t>(trace_kb) * 1024);
    watchdog_begin(*scheduler, std::chrono::milliseconds(watchdog_ms));
    Task<void> main_fiber = spawn({.name = "main"}, [=] { return body(argument); }, where);
    outcome = main_fiber.started() ? (main_fiber.detach(), scheduler->run()) : main_fiber.await();
    watchdog_end();
    scheduler->finish();
    trace_end();
    failed = scheduler->failed();
  }
  port::release(place, sizeof(Scheduler));
  return outcome;
}

}  // namespace

namespace detail {

std::expected<void, Error> run_erased(const RunOptions& options, RunBody body, void* argument,
                                      const std::source_location& where) noexcept {
  FiberName failed;
  return run_named(options, body, argument, where, failed);
}

int run_reported(const RunOptions& options, RunBody body, void* argument, const std::source_location& where) noexcept {
  FiberName failed;
  const std::expected<void, Error> outcome = run_named(options, body, argument, where, failed);
  if (outcome) return 0;
  if (outcome.error() == ErrorCode::invalid && failed.id == 0) return 2;  // the environment's fault; it has been named
  Line line;
  line.text("coir: the run ended with an error: ").text(describe(outcome.error()));
  if (outcome.error() != ErrorCode::deadlock && failed.id != 0) write_name(failed, line.text(", of "));
  line.text("\n").send(STDERR_FILENO);
  return 1;
}

}  // namespace detail

void shutdown() noexcept {
  const Visit run;
  if (!run) return;
  if (kManyWorkers && this_worker() == nullptr) {
    run->cancel_from_outside();
  } else {
    run->cancel_all();
  }
}

}  // namespace coir
