#include <coir/memory_watch.h>

#include <fcntl.h>
#include <unistd.h>

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

// read_available finds "MemAvailable:   12345 kB".
std::size_t read_available(int fd) noexcept {
  char text[512];
  const ssize_t got = ::pread(fd, text, sizeof text, 0);
  const std::string_view all(text, got > 0 ? static_cast<std::size_t>(got) : 0);
  constexpr std::string_view kName = "MemAvailable:";
  std::size_t at = all.find(kName);
  if (at == all.npos) return SIZE_MAX;
  at += kName.size();
  while (at < all.size() && all[at] == ' ') ++at;
  std::size_t kilobytes = 0;
  for (; at < all.size() && all[at] >= '0' && all[at] <= '9'; ++at)
    kilobytes = kilobytes * 10 + static_cast<std::size_t>(all[at] - '0');
  return kilobytes * 1024;
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
  const std::size_t available = fd >= 0 ? read_available(fd) : SIZE_MAX;
  if (available == SIZE_MAX) return SIZE_MAX;
  Account& total = Ledger::total();
  const std::size_t used = total.used();
  const std::size_t left = available > g_reserve ? available - g_reserve : 0;
  // Below the reserve the ceiling lies under what is used: room is made until it does not.
  const std::size_t missing = available < g_reserve ? g_reserve - available : 0;
  const std::size_t bearable = used + left - (missing < used ? missing : used);
  total.set_ceiling(bearable < g_ceiling ? bearable : g_ceiling);
  g_critical.store(available < g_reserve / 2, std::memory_order_relaxed);
  return available;
}

bool MemoryWatch::critical() noexcept {
  return g_critical.load(std::memory_order_relaxed);
}

std::size_t MemoryWatch::available() noexcept {
  const int fd = ::open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return SIZE_MAX;
  const std::size_t available = read_available(fd);
  ::close(fd);
  return available;
}

}  // namespace coir
