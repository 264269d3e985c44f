#include <CppUTest/TestHarness.h>
#include <coir/config.h>
#include <coir/fiber.h>
#include <coir/inspect.h>
#include <coir/runtime.h>
#include <coir/wait.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>

#include "tests/support/scale.h"

namespace parked_page_test {

using coir::Deadline;
using coir::Direction;
using coir::run_until_idle;
using coir::spawn;
using coir::operator""_KiB;
using coir::test::kAddressSanitized;
using coir::test::kThreadSanitized;

namespace {

constexpr long kPageBytes = 4096;
constexpr long kMostBytes = 4200;  // the page, and what reactor, timers and tables keep for the fiber elsewhere
constexpr int kFibers = 2000;

// resident_kb is what the kernel holds resident for this process, or -1. The sum over its mappings is exact; the
// counter behind VmRSS and statm may be off by 64 pages a processor, which is more than the promise leaves.
long resident_kb() noexcept {
  static char text[4096];
  const int fd = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  const ssize_t size = read(fd, text, sizeof text - 1);
  close(fd);
  text[size > 0 ? size : 0] = '\0';
  const char* const line = strstr(text, "\nRss:");
  return line == nullptr ? -1 : strtol(line + 5, nullptr, 10);
}

// is_painted tells whether each stack was written to before its fiber ran, to measure how deep that went.
bool is_painted() noexcept {
  bool measured = false;
  const auto ended = run_until_idle({.workers = 1}, [&] { measured = coir::inspect(coir::current())->stack_measured; });
  return ended && measured;
}

// unmeasurable says why resident memory cannot be measured here, or is null: a thousand fresh pages must show as such,
// and go again. A sanitizer's stacks are larger, an emulator's answers its own.
const char* unmeasurable() noexcept {
  if (is_painted()) return "paint makes every page of a stack resident";
  if (kAddressSanitized || kThreadSanitized) return "a sanitizer makes frames larger";
  constexpr long kPages = 1000;
  const long before = resident_kb();
  if (before < 0) return "no /proc/self/smaps_rollup";
  void* const memory = mmap(nullptr, kPages * kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return "no memory";
  for (long i = 0; i < kPages; ++i) static_cast<volatile char*>(memory)[i * kPageBytes] = 1;
  const long grown = resident_kb() - before;
  munmap(memory, kPages * kPageBytes);
  const long left = resident_kb() - before;
  const bool faithful = labs(grown - kPages * kPageBytes / 1024) <= 100 && labs(left) <= 100;
  return faithful ? nullptr : "the emulator's memory is not the program's";
}

// work goes as deep as a request does, so that a fiber has used its page before it parks.
[[gnu::noinline]] void work() noexcept {
  char bytes[2048];
  memset(bytes, 0x5a, sizeof bytes);
  asm volatile("" : : "r"(bytes) : "memory");
}

}  // namespace

TEST_GROUP(ParkedPage) {  // bytes_each is what one of many fibers parked in `wait(i)` adds to the process.
  template <class Wait>
  double bytes_each(int count, Wait wait) {
    long before = -1, after = -1;
    int started = 0;
    const auto ended = run_until_idle({.workers = 1}, [&] {
      const auto spawn_up_to = [&](int limit) {
        for (; started < limit; ++started) {
          auto fiber = spawn({.name = "parked", .stack = 8_KiB}, [&wait, i = started] {
            work();
            wait(i);
          });
          if (!fiber.started()) return;
          fiber.detach();
        }
        coir::yield();
        coir::yield();
      };
      // The first ones bring in the code, the tables and the main fiber's own pages.
      spawn_up_to(count / 10);
      before = resident_kb();
      spawn_up_to(count);
      after = resident_kb();
      coir::shutdown();
    });
    CHECK_TRUE(ended.has_value());
    LONGS_EQUAL(count, started);
    return static_cast<double>(after - before) * 1024 / (count - count / 10);
  }

  void holds_one_page(double bytes) {
    printf("%.0f resident bytes each\n", bytes);
    CHECK_TRUE(bytes >= kPageBytes - 60);  // less was not measured at all
    CHECK_TRUE(bytes <= kMostBytes);
  }

  bool skipped(const char* promise) {
    const char* const why = unmeasurable();
    if (why != nullptr) printf("ok - %s # SKIP %s\n", promise, why);
    return why != nullptr;
  }
};

TEST(ParkedPage, a_fiber_parked_for_good_holds_one_page) {
  if (skipped("a fiber parked for good holds one page")) return;
  holds_one_page(bytes_each(kFibers, [](int) { static_cast<void>(coir::sleep_until(Deadline::never())); }));
}

TEST(ParkedPage, a_fiber_parked_with_a_deadline_holds_one_page) {
  if (skipped("a fiber parked with a deadline holds one page")) return;
  holds_one_page(bytes_each(kFibers, [](int) { static_cast<void>(coir::sleep(std::chrono::hours(1))); }));
}

// As an SSE or WebSocket client is: parked for its descriptor.
TEST(ParkedPage, a_fiber_parked_for_a_descriptor_holds_one_page) {
  if (skipped("a fiber parked for a descriptor holds one page")) return;
  rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  const int count = static_cast<int>(std::min<rlim_t>(limit.rlim_cur - 50, kFibers));
  auto* const fds = new int[static_cast<std::size_t>(count)];
  for (int i = 0; i < count; ++i) fds[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  const double bytes = bytes_each(count, [&](int i) {
    static_cast<void>(coir::wait(fds[i], Direction::readable, Deadline::after(std::chrono::hours(1))));
    coir::close_fd(fds[i]);
  });
  delete[] fds;
  holds_one_page(bytes);
}

}  // namespace parked_page_test
