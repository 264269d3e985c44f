#pragma once

#include <cstddef>
#include <cstdint>

// The defaults of a build for no board in particular: a 64-bit Linux machine with memory to spare.
namespace coir::board {

inline constexpr const char* kName = "generic";
inline constexpr std::size_t kDefaultStackKb = 16;
inline constexpr unsigned kMaxWorkers = 16;

// The most stacks of each class; address space only, until they are used.
inline constexpr std::uint32_t kStackCapacity8 = 131072;
inline constexpr std::uint32_t kStackCapacity16 = 131072;
inline constexpr std::uint32_t kStackCapacity32 = 32768;
inline constexpr std::uint32_t kStackCapacity64 = 16384;

// Unused stacks that each worker keeps resident, per class.
inline constexpr std::uint32_t kHotStacks = 1024;

// The share of vm.max_map_count that guard pages may spend, in percent, where the kernel has no guards without
// mappings.
inline constexpr std::size_t kGuardVmaPercent = 50;

// The most threads for blocking calls; of each 64 KB of stack a page or two are touched as a rule.
inline constexpr std::size_t kBlockingThreads = 8;

// Memory of the machine that the daemon leaves free; 0: a share of it.
inline constexpr std::size_t kKeepFreeBytes = 0;
inline constexpr std::uint32_t kMaxConnections = 65536;

// Connections that wait to be accepted.
inline constexpr int kBacklog = 511;

}  // namespace coir::board
