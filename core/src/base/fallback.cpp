#include "base/fallback.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <coir/atomic.h>

#include "base/line.h"

namespace coir {

namespace {

constexpr const char* kLines[] = {
    "this kernel has no epoll: descriptors are polled by ppoll",
    "this kernel has no MADV_GUARD_INSTALL: a stack's guard takes two mappings by mprotect",
    "mappings are short: further stacks have a guard for each group and a canary each, and no guard of their own",
    "the kernel refuses guards: further stacks have a canary each, and no guard",
    "this kernel has no membarrier: no worker takes a fiber that another has just woken",
    "this kernel has no pidfd_open: the ends of child processes are polled for",
    "a call that waits was made outside a fiber: it blocks its thread",
};
static_assert(sizeof kLines / sizeof *kLines == static_cast<std::size_t>(Fallback::blocks_thread) + 1);

// A bit for each that has been told; kUnknown until the environment was looked at. Without COIR_DEBUG all have been.
constexpr std::uint32_t kUnknown = std::uint32_t{1} << 31;
constinit SharedAtomic<std::uint32_t> g_told{kUnknown};

[[gnu::noinline]] void look() noexcept {
  const char* const wish = getenv("COIR_DEBUG");
  std::uint32_t unknown = kUnknown;
  g_told.compare_exchange_strong(unknown, wish != nullptr && strcmp(wish, "1") == 0 ? 0 : ~kUnknown);
}

[[gnu::noinline]] void write_line(Fallback taken) noexcept {
  Line().add("coir: debug: ", kLines[static_cast<std::size_t>(taken)], "\n").send(STDERR_FILENO);
}

}  // namespace

void tell_fallback(Fallback taken) noexcept {
  const std::uint32_t bit = std::uint32_t{1} << static_cast<unsigned>(taken);
  if (g_told.load(std::memory_order_relaxed) == kUnknown) look();
  if ((g_told.load(std::memory_order_relaxed) & bit) != 0) return;
  if ((g_told.fetch_or(bit, std::memory_order_relaxed) & bit) == 0) write_line(taken);
}

}  // namespace coir
