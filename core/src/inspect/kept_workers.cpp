#include "inspect/kept_workers.h"

#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <coir/deadline.h>
#include <coir/format.h>

#include "base/line.h"
#include "inspect/sample.h"
#include "inspect/watch_thread.h"

namespace coir {

namespace {

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
  format(path, "/proc/self/task/", thread, "/stat", '\0');
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char text[128] = {};
  const ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  // "ID (NAME) STATE ...", where the name may hold anything.
  const char* const name_end = n > 0 ? strrchr(text, ')') : nullptr;
  return name_end != nullptr && (name_end[2] == 'S' || name_end[2] == 'D');
}

[[gnu::noinline]] void write_line(const Worker& worker, const FiberControl& fiber, std::int64_t kept_ns, bool blocked,
                                  const char* how, const LifeWatch::Tell& tell) noexcept {
  const std::source_location where = fiber.where.load(std::memory_order_relaxed);
  Line line;
  line.text(kNaming).text("fiber ").number(fiber.id.load(std::memory_order_relaxed)).text(" \"");
  line.text(fiber.name.load(std::memory_order_relaxed)).text("\" ");
  line.text(blocked ? "blocks worker " : "keeps worker ").number(worker.index()).text(" for ").seconds(kept_ns);
  line.text(how).text("; spawned at ").text(where.file_name()).text(":").number(where.line()).text("\n");
  tell_name(line, tell);
}

[[gnu::noinline]] void write_calls(const Worker& worker, const FiberControl& fiber) noexcept {
  Sample seen;
  if (sample(worker, seen) && seen.fiber_id == fiber.id.load(std::memory_order_relaxed)) {
    seen.trace.write(STDERR_FILENO);
  }
}

}  // namespace

bool KeptWorkers::look_at(const Worker& worker, Episode& episode, std::int64_t threshold_ns, Starved starved,
                          const LifeWatch::Tell& tell) noexcept {
  const std::int64_t now = monotonic_ns();
  const int thread = worker.thread_id();
  const FiberControl* const fiber = worker.peek_acting();
  const std::uint64_t switches = worker.counters.switches.load(std::memory_order_relaxed);
  if (fiber == nullptr || thread == 0 || switches != episode.switches) {
    episode = {.switches = switches, .since_ns = now, .cpu_ns = cpu_of(thread), .told = false};
    return false;
  }
  const std::int64_t kept = now - episode.since_ns;
  if (episode.told || kept < threshold_ns) return episode.told;
  const std::int64_t cpu = cpu_of(thread);
  const bool computes = cpu < 0 || episode.cpu_ns < 0 || (cpu - episode.cpu_ns) * 2 >= threshold_ns;
  const bool blocked = sleeps(thread);
  const bool runs = blocked || computes;
  if (!runs && starved == Starved::is_spared) return false;
  episode.told = true;
  write_line(worker, *fiber, kept, blocked,
             blocked ? " s so far in a call to the kernel"
             : runs  ? " s so far"
                     : " s so far, mostly without the processor",
             tell);
  if (can_tell()) write_calls(worker, *fiber);
  return true;
}

bool KeptWorkers::look(const Scheduler& scheduler, std::int64_t threshold_ns, Starved starved,
                       const LifeWatch::Tell& tell) noexcept {
  bool kept = false;
  for (unsigned i = 0; i < scheduler.worker_count(); ++i)
    kept = look_at(scheduler.worker(i), episodes_[i], threshold_ns, starved, tell) || kept;
  return kept;
}

void KeptWorkers::forget() noexcept {
  for (Episode& each : episodes_) each = {};
}

}  // namespace coir
