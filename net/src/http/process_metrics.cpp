#include "http/process_metrics.h"

#include <coir/atomic.h>
#include <coir/memory_watch.h>
#include <coir/net/stream.h>
#include <coir/program.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <charconv>
#include <string_view>

namespace coir::http {
namespace {

using Kind = MetricsText::Kind;

constexpr std::int64_t kSecond = 1'000'000'000;

std::int64_t clock_ns(clockid_t clock) noexcept {
  timespec now;
  return ::clock_gettime(clock, &now) == 0 ? now.tv_sec * kSecond + now.tv_nsec : 0;
}

// began_after_boot is when the process began, in nanoseconds since the boot, by /proc; 0 where that does not tell.
std::int64_t began_after_boot() noexcept {
  constexpr int kField = 22;  // starttime, of proc_pid_stat(5)
  const int fd = ::open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char memory[512];
  const ssize_t size = ::read(fd, memory, sizeof memory);
  ::close(fd);
  std::string_view text(memory, size > 0 ? static_cast<std::size_t>(size) : 0);
  // The name of the program, in brackets, may hold spaces and brackets.
  const std::size_t name_end = text.rfind(')');
  if (name_end == text.npos) return 0;
  text.remove_prefix(name_end);
  for (int field = 2; field < kField; ++field) {
    const std::size_t space = text.find(' ');
    if (space == text.npos) return 0;
    text.remove_prefix(space + 1);
  }
  std::int64_t ticks = 0;
  std::from_chars(text.data(), text.data() + text.size(), ticks);
  return ticks * (kSecond / ::sysconf(_SC_CLK_TCK));
}

constinit Atomic<std::int64_t> g_began{0};  // in seconds since 1970, as was told last

// start_time is when the process began, in seconds since 1970. It stays the same until the clock is set: a restart is
// what readers take a change for.
std::int64_t start_time() noexcept {
  const std::int64_t after_boot = began_after_boot();
  if (after_boot == 0) return 0;
  const std::int64_t began = (clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME) + after_boot) / kSecond;
  const std::int64_t told = g_began.load(std::memory_order_relaxed);
  if (told != 0 && began - told <= 2 && told - began <= 2) return told;
  g_began.store(began, std::memory_order_relaxed);
  return began;
}

// open_descriptors counts the descriptors of this process; 0 where /proc does not tell.
std::size_t open_descriptors() noexcept {
  const int fd = ::open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return 0;
  struct stat status;
  std::size_t count = 0;
  if (::fstat(fd, &status) == 0 && status.st_size > 0) {
    count = static_cast<std::size_t>(status.st_size);  // since Linux 6.2
  } else {
    alignas(dirent) char entries[512];
    for (;;) {
      const long size = ::syscall(SYS_getdents64, fd, entries, sizeof entries);
      if (size <= 0) break;
      for (long at = 0; at < size;) {
        const auto* const entry = reinterpret_cast<const dirent*>(entries + at);
        count += entry->d_name[0] != '.';
        at += entry->d_reclen;
      }
    }
  }
  ::close(fd);
  return count > 0 ? count - 1 : 0;
}

constexpr std::string_view kFibersLabel = !kFibers ? "none" : kManyWorkers ? "many workers" : "one worker";

}  // namespace

void write_process(MetricsText& text) noexcept {
  if (const std::int64_t began = start_time(); began != 0) {
    text.one(Kind::gauge, "process_start_time_seconds", "When the process began, in seconds since 1970.",
             static_cast<std::uint64_t>(began));
  }
  text.about(Kind::counter, "process_cpu_seconds_total", "Processor time, the kernel's for this process included.");
  text.seconds("process_cpu_seconds_total", {}, static_cast<std::uint64_t>(clock_ns(CLOCK_PROCESS_CPUTIME_ID)));
  if (const std::size_t open = open_descriptors(); open != 0)
    text.one(Kind::gauge, "process_open_fds", "Descriptors open.", open);
  if (rlimit limit; ::getrlimit(RLIMIT_NOFILE, &limit) == 0)
    text.one(Kind::gauge, "process_max_fds", "Descriptors that may be open.", limit.rlim_cur);
  text.one(Kind::gauge, "process_resident_memory_bytes", "Resident memory.", MemoryWatch::resident());
  text.about(Kind::gauge, "coir_build_info", "How the program was built, as labels of a sample that is 1.");
  text.add({"coir_build_info{version=\"", COIR_VERSION, "\",cpu=\"", COIR_CPU, "\",fibers=\"", kFibersLabel,
            "\",tls=\"", kTls ? "yes" : "no", "\"} 1\n"});
}

}  // namespace coir::http
