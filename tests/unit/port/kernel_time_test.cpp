// Times that the kernel is given and asked for, where a word has 32 bits and a time 64.

#include <CppUTest/TestHarness.h>
#include <coir/fiber.h>
#include <coir/port/futex.h>
#include <coir/runtime.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>

#include <chrono>

#include "tests/support/child.h"
#include "tests/support/scale.h"
#include "tests/support/without_syscall.h"

namespace kernel_time_test {

using namespace std::chrono_literals;
using coir::SharedAtomic;
using coir::port::futex_wait;

namespace {

std::chrono::nanoseconds now() {
  timespec time{};
  return clock_gettime(CLOCK_MONOTONIC, &time) == 0
             ? std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec)
             : std::chrono::nanoseconds(-1);
}

// waited tells how long a wait took on a futex that nobody wakes.
std::chrono::nanoseconds waited(std::chrono::nanoseconds limit) {
  SharedAtomic<std::uint32_t> word{1};
  const auto before = now();
  futex_wait(word, 1, limit.count());
  return now() - before;
}

#ifdef SYS_clock_gettime64
constexpr int kNoFilter = 99;

// forget_wide_times makes this process's kernel one from before Linux 5.1, which brought the calls of these numbers.
bool forget_wide_times() noexcept {
  for (unsigned call = SYS_clock_gettime64; call <= 423; ++call) {
    if (!coir::test::forget_syscall(call)) return false;
  }
  return true;
}

int sleeps_without() noexcept {
  if (!forget_wide_times()) return kNoFilter;
  timespec time{};
  if (clock_gettime(CLOCK_REALTIME, &time) != 0) return 1;
  const auto before = now();
  if (before < 0ns || waited(50ms) < 50ms) return 2;
  bool slept = false;
  const auto ended = coir::run_until_idle({}, [&] { slept = coir::sleep(20ms).has_value(); });
  const auto forced =
      coir::run_until_idle({.force_ppoll = true}, [&] { slept = coir::sleep(20ms).has_value() && slept; });
  return ended && forced && slept && now() - before >= 90ms ? 0 : 3;
}
#endif

}  // namespace

TEST_GROUP(KernelTime) {};

TEST(KernelTime, a_wait_of_less_than_a_second_lasts_as_long) {
  CHECK(waited(30ms) >= 30ms);
}

TEST(KernelTime, and_so_does_one_of_a_second_and_a_bit) {
  // Under the thread sanitizer a waiter looks for signals every 50 ms.
  if (!coir::test::kThreadSanitized) CHECK(waited(1020ms) >= 1020ms);
}

#ifdef SYS_clock_gettime64
TEST(KernelTime, a_kernel_without_times_of_64_bits_serves_as_well) {
  const int status = coir::test::in_child([] { return sleeps_without(); }).status;
  if (status == kNoFilter) {
    printf("ok - a kernel without times of 64 bits serves as well # SKIP no seccomp filters here, as in QEMU\n");
    return;
  }
  LONGS_EQUAL(0, status);
}
#endif

}  // namespace kernel_time_test
