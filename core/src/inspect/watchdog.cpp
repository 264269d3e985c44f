#include "inspect/watchdog.h"

#include <coir/config.h>

#if COIR_WATCHDOG

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <coir/deadline.h>
#include <coir/port/futex.h>

#include "base/line.h"
#include "base/thread.h"
#include "inspect/sample.h"
#include "schedule/scheduler.h"

namespace coir {

namespace {

constexpr std::size_t kStackBytes = 64 * 1024;

struct Episode {
  std::uint64_t switches;
  std::int64_t since_ns, cpu_ns;
  bool told;
};

struct Watchdog {
  Scheduler* scheduler;
  std::int64_t threshold_ns;
  pthread_t thread;
  bool running;
  SharedAtomic<std::uint32_t> stop;
  Episode episodes[Scheduler::kMaxWorkers];
};
constinit Watchdog g_watchdog{};

// cpu_of is how much processor time a thread of this process has had, or -1.
std::int64_t cpu_of(int thread) noexcept {
  // The kernel's name for the clock of a thread: see CPUCLOCK_PERTHREAD_MASK in its posix-timers.h.
  const auto clock = static_cast<clockid_t>((~static_cast<unsigned>(thread) << 3) | 6);
  timespec used;
  if (clock_gettime(clock, &used) != 0) return -1;
  return std::int64_t{used.tv_sec} * 1'000'000'000 + used.tv_nsec;
}

// sleeps tells whether a thread sleeps in the kernel.
bool sleeps(int thread) noexcept {
  char path[48];
  snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char text[128] = {};
  const ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  // "ID (NAME) STATE ...", where the name may hold anything.
  const char* const name_end = n > 0 ? strrchr(text, ')') : nullptr;
  return name_end != nullptr && (name_end[2] == 'S' || name_end[2] == 'D');
}

[[gnu::noinline]] void write_line(const Worker& worker, const FiberControl& fiber, std::int64_t kept_ns,
                                  bool blocked) noexcept {
  const std::source_location where = fiber.where.load(std::memory_order_relaxed);
  Line line;
  line.text("coir: fiber ").number(fiber.id.load(std::memory_order_relaxed)).text(" \"");
  line.text(fiber.name.load(std::memory_order_relaxed)).text("\" ");
  line.text(blocked ? "blocks worker " : "keeps worker ").number(worker.index()).text(" for ").seconds(kept_ns);
  line.text(blocked ? " s so far in a call to the kernel" : " s so far");
  line.text("; spawned at ").text(where.file_name()).text(":").number(where.line()).text("\n").send(STDERR_FILENO);
}

[[gnu::noinline]] void write_calls(const Worker& worker, const FiberControl& fiber) noexcept {
  Sample seen;
  if (sample(worker, seen) && seen.fiber_id == fiber.id.load(std::memory_order_relaxed)) {
    seen.trace.write(STDERR_FILENO);
  }
}

void look_at(const Worker& worker, Episode& episode) noexcept {
  const std::int64_t now = monotonic_ns();
  const int thread = worker.thread_id();
  const FiberControl* const fiber = worker.peek();
  const std::uint64_t switches = worker.counters.switches.load(std::memory_order_relaxed);
  if (fiber == nullptr || thread == 0 || switches != episode.switches) {
    episode = {.switches = switches, .since_ns = now, .cpu_ns = cpu_of(thread), .told = false};
    return;
  }
  const std::int64_t kept = now - episode.since_ns;
  if (episode.told || kept < g_watchdog.threshold_ns) return;
  const std::int64_t cpu = cpu_of(thread);
  const bool computes = cpu < 0 || episode.cpu_ns < 0 || (cpu - episode.cpu_ns) * 2 >= g_watchdog.threshold_ns;
  const bool blocked = sleeps(thread);
  if (!blocked && !computes) return;  // it did not get the processor
  episode.told = true;
  write_line(worker, *fiber, kept, blocked);
  write_calls(worker, *fiber);
}

void* watch(void*) noexcept {
  const std::int64_t pause = g_watchdog.threshold_ns / 4;
  while (g_watchdog.stop.load(std::memory_order_acquire) == 0) {
    port::futex_wait(g_watchdog.stop, 0, pause);
    for (unsigned i = 0; i < g_watchdog.scheduler->worker_count(); ++i)
      look_at(g_watchdog.scheduler->worker(i), g_watchdog.episodes[i]);
  }
  return nullptr;
}

}  // namespace

void watchdog_begin(Scheduler& scheduler, std::chrono::milliseconds threshold) noexcept {
  if (threshold.count() == 0) return;
  g_watchdog.scheduler = &scheduler;
  g_watchdog.threshold_ns = threshold.count() * 1'000'000;
  g_watchdog.stop.store(0, std::memory_order_relaxed);
  for (Episode& each : g_watchdog.episodes) each = {};
  unseen_threads.fetch_add(1, std::memory_order_relaxed);
  g_watchdog.running = start_thread(g_watchdog.thread, kStackBytes, all_signals(), watch, nullptr) == 0;
  if (!g_watchdog.running) unseen_threads.fetch_sub(1, std::memory_order_relaxed);
}

void watchdog_end() noexcept {
  if (!g_watchdog.running) return;
  g_watchdog.stop.store(1, std::memory_order_release);
  port::futex_wake(g_watchdog.stop);
  pthread_join(g_watchdog.thread, nullptr);
  unseen_threads.fetch_sub(1, std::memory_order_relaxed);
  g_watchdog.running = false;
}

}  // namespace coir

#endif
