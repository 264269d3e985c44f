#pragma once

#include <cstddef>
#include <cstdint>

// The defaults of the Milk-V Duo: one core, 64 MB of RAM of which Linux sees 29 MB and leaves 11 MB to programs.
namespace coir::board {

inline constexpr const char* kName = "milkv-duo";
inline constexpr std::size_t kDefaultStackKb = 16;
inline constexpr unsigned kMaxWorkers = 1;

// The most stacks of each class. Address space only, until they are used; the memory budget is met long before these.
inline constexpr std::uint32_t kStackCapacity8 = 4096;
inline constexpr std::uint32_t kStackCapacity16 = 4096;
inline constexpr std::uint32_t kStackCapacity32 = 512;
inline constexpr std::uint32_t kStackCapacity64 = 128;

// Unused stacks that the worker keeps resident, per class: 128 KB if each touched one page.
inline constexpr std::uint32_t kHotStacks = 32;

// The share of vm.max_map_count that guard pages may spend, in percent. Each mapping costs the kernel 200 bytes that no
// ledger of ours sees: a quarter of 65,530 is 3 MB at the very most.
inline constexpr std::size_t kGuardVmaPercent = 25;

// The most threads for blocking calls; of each 64 KB of stack a page or two are touched as a rule.
inline constexpr std::size_t kBlockingThreads = 4;

// Memory that the daemon leaves free: with less the kernel kills, for part of what it counts as free is kept for
// interrupts and for pages that lie together. The ledger is met long before so many connections.
inline constexpr std::size_t kKeepFreeBytes = std::size_t{4480} << 10;
inline constexpr std::uint32_t kMaxConnections = 8192;

// Connections that wait to be accepted cost as much as others and are on no ledger: a flood of 20,000 clients killed
// the board once with 512.
inline constexpr int kBacklog = 256;

}  // namespace coir::board
