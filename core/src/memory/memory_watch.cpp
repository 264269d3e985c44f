#include <coir/memory_watch.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string_view>

#include <coir/atomic.h>
#include <coir/ledger.h>

namespace coir {

namespace {

constinit Atomic<int> g_meminfo{-1};
constinit Atomic<bool> g_critical{false};
constinit std::size_t g_ceiling = SIZE_MAX;
constinit std::size_t g_reserve = 0;

// The lines of /proc/meminfo that count; its first line is not one of them.
constexpr std::string_view kFree = "\nMemFree:", kAvailable = "\nMemAvailable:", kActive = "\nActive(file):",
                           kInactive = "\nInactive(file):";

constexpr std::uint64_t kNoLine = UINT64_MAX;

// In 64 bits: below a 64-bit kernel a program of 32 bits may see more than it can address.
std::uint64_t bytes_of(std::string_view all, std::string_view name) noexcept {
  std::size_t at = all.find(name);
  if (at == all.npos) return kNoLine;
  at += name.size();
  while (at < all.size() && all[at] == ' ') ++at;
  std::uint64_t kilobytes = 0;
  std::from_chars(all.data() + at, all.data() + all.size(), kilobytes);
  return kilobytes * 1024;
}

std::size_t read_spare(int fd) noexcept {
  char text[512];  // the lines that count are the first twelve
  const ssize_t got = ::pread(fd, text, sizeof text, 0);
  const std::string_view all(text, got > 0 ? static_cast<std::size_t>(got) : 0);
  std::uint64_t spare = bytes_of(all, kAvailable);
  const std::uint64_t free = bytes_of(all, kFree), active = bytes_of(all, kActive), inactive = bytes_of(all, kInactive);
  if (free != kNoLine && active != kNoLine && inactive != kNoLine) spare = std::min(spare, free + active + inactive);
  if (spare == kNoLine) return SIZE_MAX;
  return static_cast<std::size_t>(std::min<std::uint64_t>(spare, SIZE_MAX - 1));
}

}  // namespace

bool MemoryWatch::open(std::size_t ceiling, std::size_t reserve) noexcept {
  close();
  g_ceiling = ceiling;
  g_reserve = reserve;
  Ledger::total().set_ceiling(ceiling);
  g_meminfo.store(::open("/proc/meminfo", O_RDONLY | O_CLOEXEC), std::memory_order_release);
  return look() != SIZE_MAX;
}

void MemoryWatch::close() noexcept {
  if (const int fd = g_meminfo.exchange(-1, std::memory_order_acq_rel); fd >= 0) ::close(fd);
  g_critical.store(false, std::memory_order_relaxed);
}

std::size_t MemoryWatch::look() noexcept {
  const int fd = g_meminfo.load(std::memory_order_acquire);
  const std::size_t spare = fd >= 0 ? read_spare(fd) : SIZE_MAX;
  if (spare == SIZE_MAX) return SIZE_MAX;
  Account& total = Ledger::total();
  const std::size_t used = total.used();
  const std::size_t left = spare > g_reserve ? spare - g_reserve : 0;
  // Below the reserve the ceiling lies under what is used: room is made until it does not.
  const std::size_t missing = spare < g_reserve ? g_reserve - spare : 0;
  const std::size_t kept = used - (missing < used ? missing : used);
  const std::size_t bearable = left < SIZE_MAX - kept ? kept + left : SIZE_MAX;
  total.set_ceiling(bearable < g_ceiling ? bearable : g_ceiling);
  g_critical.store(spare < g_reserve / 2, std::memory_order_relaxed);
  return spare;
}

bool MemoryWatch::critical() noexcept {
  return g_critical.load(std::memory_order_relaxed);
}

std::size_t MemoryWatch::spare() noexcept {
  const int fd = ::open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return SIZE_MAX;
  const std::size_t spare = read_spare(fd);
  ::close(fd);
  return spare;
}

// The second number of statm is in pages.
std::size_t MemoryWatch::resident() noexcept {
  char text[128];
  const int fd = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const ssize_t got = ::read(fd, text, sizeof text);
  ::close(fd);
  const std::string_view line(text, got > 0 ? static_cast<std::size_t>(got) : 0);
  const std::size_t space = line.find(' ');
  std::size_t pages = 0;
  if (space != line.npos) std::from_chars(text + space + 1, text + line.size(), pages);
  return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace coir
