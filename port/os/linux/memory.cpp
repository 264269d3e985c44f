#include <coir/port/memory.h>
#include <coir/port/spinning.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <charconv>

#include <coir/config.h>
#include <coir/port/atomic.h>

namespace coir::port {

namespace {
#ifndef MADV_GUARD_INSTALL
constexpr int kGuardInstall = 102;
#else
constexpr int kGuardInstall = MADV_GUARD_INSTALL;
#endif
constexpr int kNoAdvice = 0x7fffffff;  // which no kernel will ever give a meaning

// map_over has the kernel map fresh pages over old ones.
bool map_over(void* start, std::size_t bytes) noexcept {
  constexpr int kAccess = PROT_READ | PROT_WRITE;
  // The same flags as reserve's, so that the mapping merges with its neighbours.
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
#if COIR_TSAN
  // The thread sanitizer takes mmap for a write to each byte, which races with whoever looks at an atomic word there.
  // The kernel swaps the pages at once, as by madvise, of which the sanitizer hears nothing either.
  return syscall(SYS_mmap, start, bytes, kAccess, kFlags, -1, 0) != -1;
#else
  return mmap(start, bytes, kAccess, kFlags, -1, 0) != MAP_FAILED;
#endif
}
}  // namespace

void* reserve(std::size_t bytes) noexcept {
  expect_no_spinlock("mmap");
  // In a program that has called mlockall(MCL_FUTURE), the kernel makes a mapping resident as soon as it is accessible
  // and locked.
  void* const start = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) return nullptr;
  static_cast<void>(munlock(start, bytes));
  if (mprotect(start, bytes, PROT_READ | PROT_WRITE) == 0) return start;
  munmap(start, bytes);
  return nullptr;
}

void release(void* start, std::size_t bytes) noexcept {
  expect_no_spinlock("munmap");
  munmap(start, bytes);
}

bool give_back(void* start, std::size_t bytes) noexcept {
  expect_no_spinlock("madvise");
  return madvise(start, bytes, MADV_DONTNEED) == 0 || map_over(start, bytes);
}

std::size_t resident_bytes(void* start, std::size_t bytes) noexcept {
  unsigned char pages[64];
  if (bytes > sizeof pages * kPageBytes || mincore(start, bytes, pages) != 0) return 0;
  std::size_t sum = 0;
  for (std::size_t i = 0; i < bytes / kPageBytes; ++i) sum += (pages[i] & 1) != 0 ? kPageBytes : 0;
  return sum;
}

bool guard_by_advice(void* start, std::size_t bytes) noexcept {
  expect_no_spinlock("madvise");
  // An emulated kernel (qemu's user mode) may say yes to advice that it does not know, and leave the page open: asked
  // once.
  static SharedAtomic<int> honest{-1};
  if (honest.load(std::memory_order_relaxed) < 0) {
    honest.store(madvise(start, bytes, kNoAdvice) != 0 ? 1 : 0, std::memory_order_relaxed);
  }
  return honest.load(std::memory_order_relaxed) == 1 && madvise(start, bytes, kGuardInstall) == 0;
}

bool guard_by_protection(void* start, std::size_t bytes) noexcept {
  expect_no_spinlock("mprotect");
  return mprotect(start, bytes, PROT_NONE) == 0;
}

std::size_t max_map_count() noexcept {
  std::size_t count = 65530;
  const int fd = open("/proc/sys/vm/max_map_count", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return count;
  char text[24];
  const ssize_t n = read(fd, text, sizeof text);
  close(fd);
  if (n > 0) std::from_chars(text, text + n, count);
  return count;
}

}  // namespace coir::port
