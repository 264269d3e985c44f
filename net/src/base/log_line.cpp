#include <coir/net/log_line.h>

#include <coir/atomic.h>
#include <coir/format.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/recent_lines.h"

namespace coir {
namespace {

// The states of g_target before standard error is examined, and where it cannot be opened a second time.
constexpr int kUnknown = -1;
constexpr int kAsks = -2;
constexpr int kSocket = -3;

constinit Atomic<int> g_target{kUnknown};  // a descriptor, or one of these
constinit Atomic<std::uint64_t> g_dropped{0};
constinit Atomic<std::uint64_t> g_untold{0};
constinit LogSource g_program("program");

// find_target examines standard error. If two threads come at the same time, the later closes its descriptor.
[[gnu::noinline]] int find_target() noexcept {
  struct stat status;
  int target = kAsks;
  if (::fstat(STDERR_FILENO, &status) == 0) {
    if (S_ISREG(status.st_mode)) target = STDERR_FILENO;
    if (S_ISSOCK(status.st_mode)) target = kSocket;
    if (S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode)) {
      const int fd = ::open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
      if (fd >= 0) target = fd;
    }
  }
  int known = kUnknown;
  if (g_target.compare_exchange_strong(known, target, std::memory_order_relaxed)) return target;
  if (target > STDERR_FILENO) ::close(target);
  return known;
}

bool has_room() noexcept {
  pollfd entry = {.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  return ::poll(&entry, 1, 0) == 1 && (entry.revents & POLLOUT) != 0;
}

bool put(std::string_view line) noexcept {
  int target = g_target.load(std::memory_order_relaxed);
  if (target == kUnknown) target = find_target();
  ssize_t written = -1;
  if (target == kSocket) {
    written = ::send(STDERR_FILENO, line.data(), line.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  } else if (target != kAsks || has_room()) {
    written = ::write(target == kAsks ? STDERR_FILENO : target, line.data(), line.size());
  }
  return written == static_cast<ssize_t>(line.size());
}

// tell writes how many lines were dropped, before the next line.
bool tell(std::uint64_t dropped) noexcept {
  char text[80];
  return put(format(text, "coir: ", dropped, " lines of this log were dropped: nobody read them\n"));
}

bool put_or_count(std::string_view line) noexcept {
  if (g_untold.load(std::memory_order_relaxed) != 0) [[unlikely]] {
    // The thread that takes the number reports it, or puts it back.
    const std::uint64_t untold = g_untold.exchange(0, std::memory_order_relaxed);
    if (untold != 0 && !tell(untold)) g_untold.fetch_add(untold, std::memory_order_relaxed);
  }
  if (put(line)) return true;
  g_dropped.fetch_add(1, std::memory_order_relaxed);
  g_untold.fetch_add(1, std::memory_order_relaxed);
  return false;
}

}  // namespace

bool log_line(LogSource& source, LogLevel level, std::string_view line, std::size_t prefix) noexcept {
  const auto left_out = LogRing::admit(source, level);
  if (!left_out) return false;
  if (*left_out != 0) [[unlikely]] {
    char text[120];
    const std::string_view count =
        format(text, "coir: ", *left_out, " lines of source ", LogRing::name_of(source), " were left out: too many\n");
    LogRing::keep(source, LogLevel::warning, count.substr(6));
    put_or_count(count);
  }
  LogRing::keep(source, level, line.substr(prefix));
  return put_or_count(line);
}

bool log_line(std::string_view line) noexcept {
  return log_line(g_program, LogLevel::notice, line);
}

void remember_log_line(LogSource& source, LogLevel level, std::string_view line, std::size_t prefix) noexcept {
  if (LogRing::wanted(level)) LogRing::keep(source, level, line.substr(prefix));
}

std::uint64_t log_lines_dropped() noexcept {
  return g_dropped.load(std::memory_order_relaxed);
}

}  // namespace coir
