#pragma once

#include <cstddef>

namespace coir {

// MemoryWatch keeps the ledger's ceiling below what the machine can spare, so that the machine stays alive and not only
// the process: others take memory too, and the kernel's share of a connection is an estimate.
//
// One per process. Each look costs one system call, some 10 to 300 microseconds.
class MemoryWatch {
 public:
  // open starts watching: the ledger's total may hold `ceiling` bytes, and `reserve` bytes of MemAvailable are never to
  // be used. False: this system does not tell (no /proc/meminfo); then `ceiling` alone holds.
  static bool open(std::size_t ceiling, std::size_t reserve) noexcept;
  static void close() noexcept;

  // look reads MemAvailable and sets the ceiling of the total: what is used now and what may still be taken, at most
  // the ceiling of open. Returns MemAvailable in bytes, or SIZE_MAX when it is not known.
  static std::size_t look() noexcept;

  // critical tells whether the last look found less than half of the reserve.
  static bool critical() noexcept;

  // available reads MemAvailable, or SIZE_MAX.
  static std::size_t available() noexcept;
};

}  // namespace coir
