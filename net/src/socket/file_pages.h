#pragma once

#include <coir/config.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "socket/kernel.h"

// Reads of files that may have to wait for a disk: what is in the kernel's page cache is read in place, what is not by
// a thread of the blocking pool while the fiber parks. Whether it is there is asked by preadv2 with RWF_NOWAIT (Linux
// 4.14); of a file system that lacks that (squashfs, older tmpfs) by mincore. If the kernel has neither, files are
// read in place. Names are looked up in place: a directory that has never been read holds up the worker for that once.
//
// Without fibers nobody else could be served meanwhile: files are read in place.
namespace coir {

#if COIR_NO_ASYNC

inline ssize_t read_file(int file, void* into, std::size_t size, std::uint64_t offset) noexcept {
  return kernel::read_at(file, into, size, offset);
}
inline std::size_t load_pages(int, std::uint64_t, std::size_t count, std::span<char>) noexcept {
  return count;
}

#else

// read_file is pread; it may park. Returns -errno on failure.
ssize_t read_file(int file, void* into, std::size_t size, std::uint64_t offset) noexcept;

// kFileStep is how far apart the places lie that are asked for, and how much is read at once where they are missing: as
// much as the kernel reads ahead.
inline constexpr std::size_t kFileStep = std::size_t{128} * 1024;

// load_pages sees to it that what is sent next from `offset` on does not wait for a disk, and returns how many bytes
// that is said of, `count` at most. The last page of each step is examined, and the very first: pages between were
// read with them. Present pages are not touched; where `offset` is not there, a step is read through `scrap`, and the
// caller may park. Costs a system call for each step where everything is there.
std::size_t load_pages(int file, std::uint64_t offset, std::size_t count, std::span<char> scrap) noexcept;

#endif

}  // namespace coir
