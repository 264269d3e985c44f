#include "socket/file_pages.h"

#include <coir/atomic.h>
#include <coir/blocking.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>

#include "base/rounded.h"
#include "socket/kernel.h"

namespace coir {
namespace {

constexpr int kNoWait = 0x8;  // RWF_NOWAIT, which older headers lack

// relaxed: set once, and whoever reads it too late asks the kernel once more.
Atomic<bool> preadv2_missing = false;

// Not inlined for the sake of errno, as in socket/kernel.h. -EAGAIN: the page is not there.
[[gnu::noinline]] ssize_t read_present(int file, void* into, std::size_t size, std::uint64_t offset) noexcept {
  if (preadv2_missing.load(std::memory_order_relaxed)) return -EOPNOTSUPP;
  const iovec part = {into, size};
  const ssize_t got = ::preadv2(file, &part, 1, static_cast<off_t>(offset), kNoWait);
  if (got >= 0) return got;
  const int fault = errno;
  if (fault != ENOSYS && fault != EINVAL) return -fault;
  preadv2_missing.store(true, std::memory_order_relaxed);
  return -EOPNOTSUPP;
}

// mapped_present asks for a run of at most kFileStep bytes by mincore. Pages that mincore cannot report count as present.
[[gnu::noinline]] bool mapped_present(int file, std::uint64_t offset, std::size_t size) noexcept {
  constexpr std::size_t kPage = 4096;
  unsigned char there[kFileStep / kPage + 2];
  const std::size_t before = static_cast<std::size_t>(offset % kPage);
  const std::size_t length = rounded(before + size, kPage);
  void* const map = ::mmap(nullptr, length, PROT_READ, MAP_SHARED, file, static_cast<off_t>(offset - before));
  if (map == MAP_FAILED) return true;
  const bool known = ::mincore(map, length, there) == 0;
  ::munmap(map, length);
  return !known || std::all_of(there, there + length / kPage, [](unsigned char page) { return (page & 1) != 0; });
}

// is_present asks for the last byte of a run, and for the first if `both`.
bool is_present(int file, std::uint64_t offset, std::size_t size, bool both) noexcept {
  char byte;
  ssize_t got = both ? read_present(file, &byte, 1, offset) : 1;
  if (got >= 0) got = read_present(file, &byte, 1, offset + size - 1);
  // Any other failure is for whoever sends it to meet.
  if (got != -EOPNOTSUPP) return got != -EAGAIN;
  return mapped_present(file, offset, size);
}

}  // namespace

ssize_t read_file(int file, void* into, std::size_t size, std::uint64_t offset) noexcept {
  const ssize_t got = read_present(file, into, size, offset);
  if (got >= 0 || (got != -EAGAIN && got != -EOPNOTSUPP)) return got;
  if (got == -EOPNOTSUPP && (size > kFileStep || mapped_present(file, offset, size)))
    return kernel::read_at(file, into, size, offset);
  const auto read = detail::blocking_for(
      detail::BlockingKind::files, [&](const BlockingStop&) { return kernel::read_at(file, into, size, offset); },
      Deadline::never());
  return read ? *read : kernel::read_at(file, into, size, offset);
}

std::size_t load_pages(int file, std::uint64_t offset, std::size_t count, std::span<char> scrap) noexcept {
  std::size_t there = 0;
  while (there < count) {
    const std::size_t step = std::min(count - there, kFileStep);
    if (!is_present(file, offset + there, step, there == 0)) break;
    there += step;
  }
  if (there != 0 || count == 0) return there;
  const std::size_t step = std::min(count, kFileStep);
  static_cast<void>(detail::blocking_for(
      detail::BlockingKind::files,
      [&](const BlockingStop& stop) {
        ssize_t got = 0;
        for (std::size_t at = 0; at < step && !stop.wanted(); at += static_cast<std::size_t>(got)) {
          got = kernel::read_at(file, scrap.data(), std::min(scrap.size(), step - at), offset + at);
          if (got <= 0) break;
        }
        return got;
      },
      Deadline::never()));
  return step;
}

}  // namespace coir
