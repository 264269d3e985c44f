#include <coir/port/limits.h>

#include <coir/port/atomic.h>
#include <sys/sysinfo.h>

#include "board.h"

namespace coir::port {
namespace {

// 0 until it is known. Threads that come first together store the same.
constinit SharedAtomic<std::size_t> g_memory{0};

std::size_t find_memory() noexcept {
  struct sysinfo info;
  std::uint64_t seen = ::sysinfo(&info) == 0 ? std::uint64_t{info.totalram} * info.mem_unit : 0;
  if (seen == 0 || (board::kMemoryBytes != 0 && seen > board::kMemoryBytes)) seen = board::kMemoryBytes;
  constexpr std::uint64_t kGuess = 64 << 20;
  if (seen == 0) seen = kGuess;
  return seen < SIZE_MAX ? static_cast<std::size_t>(seen) : SIZE_MAX;
}

}  // namespace

const char* board_name() noexcept {
  return board::kName;
}

unsigned board_cores() noexcept {
  return board::kCores;
}

Limits limits() noexcept {
  std::size_t memory = g_memory.load(std::memory_order_relaxed);
  if (memory == 0) g_memory.store(memory = find_memory(), std::memory_order_relaxed);
  return limits_for(memory);
}

}  // namespace coir::port
