#pragma once

// Address space, whole pages, and guards.
//
//   void* const memory = reserve(64 * kPageBytes);
//   if (memory == nullptr) return complain("no address space");
//   static_cast<void>(give_back(memory, kPageBytes));      // the page reads as zero again
//   release(memory, 64 * kPageBytes);

#include <cstddef>

namespace coir::port {

inline constexpr std::size_t kPageBytes = 4096;

// reserve maps `bytes` of address space, readable and writable, of which nothing is resident until it is touched,
// also in a program that has called mlockall(MCL_FUTURE): what is reserved is not locked.
// In a build without fibers it is zeroed memory of the C library, which keeps it: give_back says no, and nothing else
// of this header is there. Returns nullptr when address space or the process's limits refuse. release gives it back.
void* reserve(std::size_t bytes) noexcept;
void release(void* start, std::size_t bytes) noexcept;

// give_back returns whole pages to the kernel; they read as zero afterwards. By madvise(MADV_DONTNEED), or, on kernels
// built without it, by mapping fresh pages over them, which are resident where all later mappings are locked. False: the
// kernel refused and the pages stay as they are.
bool give_back(void* start, std::size_t bytes) noexcept;

// resident_bytes is how much of a run of whole pages, 256 KiB at most, the kernel holds in memory; 0 where it does not
// tell. Async-signal-safe.
std::size_t resident_bytes(void* start, std::size_t bytes) noexcept;

// guard_by_advice makes pages fault on access without a mapping of their own (MADV_GUARD_INSTALL, Linux 6.13).
// guard_by_protection does so by mprotect, which splits the mapping: two more entries of the process's map count each.
bool guard_by_advice(void* start, std::size_t bytes) noexcept;
bool guard_by_protection(void* start, std::size_t bytes) noexcept;

// max_map_count is vm.max_map_count: how many mappings the kernel grants one process. 65530 when it cannot be read.
std::size_t max_map_count() noexcept;

}  // namespace coir::port
