#pragma once

// Limits that fit into the memory of this machine.
//
//   const auto limits = coir::port::limits();
//   show(limits.connections, "connections at most");

#include <cstddef>
#include <cstdint>

namespace coir::port {

// Limits are what a program may have at most of each thing, so that it fits into the machine that it runs on. They follow
// from the memory by one formula, measured on the reference board (29 MB, which gives the figures in brackets); a board's
// folder names no limit of its own.
struct Limits {
  std::size_t memory_bytes;  // what they were computed from

  // The most stacks of 8, 16, 32 and 64 KB [4096 4096 512 128]. Address space only, until they are used: the ledger is
  // met long before.
  std::uint32_t stacks[4];
  // Unused stacks that each worker keeps resident, per class [32]: 128 KB if each touched one page.
  std::uint32_t hot_stacks;
  // The share of vm.max_map_count that guard pages may spend, in percent [25], where the kernel has no guards without
  // mappings. Each mapping costs the kernel 200 bytes that no ledger sees.
  std::size_t guard_percent;
  // The most threads for blocking calls [4]; of each 64 KB of stack a page or two are touched as a rule.
  std::size_t blocking_threads;
  static constexpr std::size_t kMostBlockingThreads = 8;
  // Memory that a daemon leaves free [4.5 MB]: with less the kernel kills, for part of what it counts as free is kept
  // for interrupts and for pages that lie together. 0: memory is plenty, and a share of what is free will do.
  std::size_t keep_free_bytes;
  // The most connections [8192]; the ledger is met long before.
  std::uint32_t connections;
  // The memory that the kernel is assumed to hold for an idle connection [4096]. With tens of thousands it holds more for
  // each: 4,170 bytes with 55,000 connections on a machine of 256 MB.
  std::size_t kernel_bytes_per_connection;
  // Connections that wait to be accepted cost as much as others and are on no ledger [256]: a flood of 20,000 clients
  // killed the reference board once with 512.
  int backlog;
};

// limits_for computes the limits of a machine whose Linux sees so much memory (MemTotal). If addresses have 32 bits,
// stacks are reserved as for 128 MB at most, which takes 0.8 GB of the 3 that a process has.
constexpr Limits limits_for(std::size_t memory_bytes, std::size_t address_bits = sizeof(void*) * 8) noexcept {
  constexpr std::uint64_t kKilo = 1024, kMega = 1024 * kKilo;
  const auto within = [](std::uint64_t least, std::uint64_t value, std::uint64_t most) {
    return static_cast<std::uint32_t>(value < least ? least : value > most ? most : value);
  };
  const std::uint64_t memory = memory_bytes;
  const std::uint64_t stack_memory = address_bits > 32 || memory < 128 * kMega ? memory : 128 * kMega;
  return {
      .memory_bytes = memory_bytes,
      .stacks = {within(512, stack_memory / 7424, 131072), within(512, stack_memory / 7424, 131072),
                 within(64, stack_memory / (58 * kKilo), 32768), within(16, stack_memory / (232 * kKilo), 16384)},
      .hot_stacks = within(8, memory / (928 * kKilo), 1024),
      .guard_percent = within(10, memory * 25 / (29 * kMega), 50),
      .blocking_threads = memory < 128 * kMega ? 4 : Limits::kMostBlockingThreads,
      .keep_free_bytes = static_cast<std::size_t>(memory <= 512 * kMega ? 4 * kMega + memory / 64 : 0),
      .connections = within(256, memory / 3712, 65536),
      .kernel_bytes_per_connection = memory < 64 * kMega ? std::size_t{4096} : std::size_t{4224},
      .backlog = static_cast<int>(within(64, memory / (116 * kKilo), 511)),
  };
}

// The stack of a fiber that asks for none in particular, before COIR_STACK_KB.
inline constexpr std::size_t kDefaultStackKb = 16;

// board_name is the folder of port/boards that the build was made for.
const char* board_name() noexcept;

// board_cores is how many cores the board has; 0: as many as the machine.
unsigned board_cores() noexcept;

// limits are those of the machine that the program runs on: of the memory that Linux sees, or of the board's where that is
// less, as under an emulator of the board's processor. One system call at the first call, some multiplications at the
// others; from any context but a signal handler.
Limits limits() noexcept;

}  // namespace coir::port
