#include "fiber/paint.h"

#if defined(COIR_PAINT)

#include <coir/spinlock.h>
#include <coir/stack_size.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fiber/stack_pool.h"

namespace coir {

namespace {

constexpr std::uint64_t kPattern = 0xc01fc01fc01fc01f;
constexpr std::size_t kMostUses = 64;

struct Use {
  const char* name;
  std::size_t class_bytes;
  std::size_t peak_bytes;
  std::uint64_t fibers;
};

constinit Spinlock g_stack_uses_lock;
constinit Use g_stack_uses[kMostUses] = {};

std::size_t stack_bytes_of(const FiberControl* fiber) noexcept {
  return nominal_stack_bytes(fiber->stack_class) * kStackInflation;
}

}  // namespace

void paint_stack(FiberControl* fiber) noexcept {
  auto* at = reinterpret_cast<std::uint64_t*>(StackArena::low_end(fiber, stack_bytes_of(fiber)));
  // The first frame exists already; nothing touches the red zone below it before the fiber runs.
  auto* const end = static_cast<std::uint64_t*>(fiber->sp);
  while (at < end) *at++ = kPattern;
}

std::size_t painted_peak(const FiberControl* fiber) noexcept {
  const std::size_t bytes = stack_bytes_of(fiber);
  const auto* const low = reinterpret_cast<const char*>(fiber + 1) - bytes;
  const auto* at = reinterpret_cast<const std::uint64_t*>(low);
  while (*at == kPattern) ++at;
  return bytes - static_cast<std::size_t>(reinterpret_cast<const char*>(at) - low);
}

void note_stack_use(const FiberControl* fiber) noexcept {
  const std::size_t bytes = stack_bytes_of(fiber);
  const std::size_t peak = painted_peak(fiber);
  const char* const name = fiber->name.load(std::memory_order_relaxed);
  Locked hold(g_stack_uses_lock);
  for (Use& use : g_stack_uses) {
    if (use.name == nullptr) use = {.name = name, .class_bytes = bytes, .peak_bytes = 0, .fibers = 0};
    if (use.class_bytes != bytes || strcmp(use.name, name) != 0) continue;
    if (peak > use.peak_bytes) use.peak_bytes = peak;
    ++use.fibers;
    return;
  }
}

void write_stack_use() noexcept {
  const char* const path = getenv("COIR_STACK_LOG");
  if (path == nullptr) return;
  const int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return;
  for (const Use& use : g_stack_uses) {
    if (use.name == nullptr) break;
    dprintf(fd, "%s\t%zu\t%zu\t%llu\n", use.name, use.class_bytes / 1024, use.peak_bytes,
            static_cast<unsigned long long>(use.fibers));
  }
  close(fd);
}

}  // namespace coir

#endif
