#pragma once

// The ledger's ceiling follows what the machine can spare.
//
//   MemoryWatch::open(8 << 20, 4 << 20);        // at most 8 MB, and 4 MB are left to others
//   MemoryWatch::look();                        // from time to time
//   if (MemoryWatch::critical()) show("memory is short");

#include <cstddef>

namespace coir {

// MemoryWatch keeps the ledger's ceiling below what the machine can spare, so that the machine stays alive and not only
// the process: others take memory too, and the kernel's share of a connection is an estimate.
//
// The machine can spare MemAvailable, or free memory and page cache where that is less: MemAvailable also
// counts the kernel's objects for open sockets, 0.6 to 0.9 KB each, as if they could be reclaimed, and a machine full
// of connections dies while it still promises megabytes.
//
// One per process. Each look costs one system call, some 10 to 300 microseconds.
class MemoryWatch {
 public:
  // open starts watching: the ledger's total may hold `ceiling` bytes, and `reserve` bytes are never to be taken from
  // the machine. False: this system does not tell (no /proc/meminfo); then `ceiling` alone holds.
  static bool open(std::size_t ceiling, std::size_t reserve) noexcept;
  static void close() noexcept;

  // look reads what can be spared and sets the ceiling of the total: what is used now and what may still be taken, at
  // most the ceiling of open. Returns the bytes that can be spared, or SIZE_MAX when that is not known.
  static std::size_t look() noexcept;

  // critical tells whether the last look found less than half of the reserve.
  static bool critical() noexcept;

  // spare reads what can be spared, in bytes, or SIZE_MAX.
  static std::size_t spare() noexcept;

  // resident reads what is resident of this process, in bytes; 0 without /proc.
  static std::size_t resident() noexcept;
};

}  // namespace coir
