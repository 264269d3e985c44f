#include <CppUTest/TestHarness.h>
#include <coir/atomic.h>
#include <coir/fiber.h>
#include <coir/port/limits.h>
#include <coir/runtime.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>

#include "tests/support/child.h"
#include "tests/support/scale.h"
#include "tests/support/without_syscall.h"

namespace sleep_test {

using coir::Deadline;
using coir::Fiber;
using coir::monotonic_ns;
using coir::run_until_idle;
using coir::spawn;
using coir::test::scaled;
using namespace std::chrono_literals;

TEST_GROUP(Sleep) {};

TEST(Sleep, is_never_shorter_than_asked) {
  constexpr int kFibers = 200;
  std::atomic<int> early{0}, failed{0};
  for (const unsigned workers : {1u, 2u}) {
    const auto ended = run_until_idle({.workers = workers}, [&] {
      for (int i = 0; i < kFibers; ++i) {
        spawn([&, i] {
          for (int round = 0; round < 5; ++round) {
            const std::int64_t span = (i * 7 + round) % 40 * 271'000;
            const std::int64_t start = monotonic_ns();
            failed += !coir::sleep(std::chrono::nanoseconds(span));
            early += monotonic_ns() - start < span;
          }
        }).detach();
      }
    });
    CHECK_TRUE(ended.has_value());
  }
  LONGS_EQUAL(0, failed);
  LONGS_EQUAL(0, early);
}

TEST(Sleep, the_shorter_sleeper_wakes_first) {
  constexpr int kFibers = 10;
  int order[kFibers] = {};
  // On a slow machine some may begin to sleep only after the first has to wake: then the next try has longer steps.
  bool all_slept = false;
  for (std::int64_t step = 2'000'000; !all_slept; step *= 2) {
    int next = 0;
    const auto ended = run_until_idle({.workers = 1}, [&] {
      const std::int64_t start = monotonic_ns();
      for (int i = 0; i < kFibers; ++i) {
        spawn([&order, &next, start, step, i] {
          static_cast<void>(coir::sleep_until(Deadline::at_ns(start + (kFibers - i) * step)));
          order[next++] = i;
        }).detach();
      }
      coir::yield();
      all_slept = monotonic_ns() < start + step;
    });
    CHECK_TRUE(ended.has_value());
  }
  for (int i = 0; i < kFibers; ++i) LONGS_EQUAL(kFibers - 1 - i, order[i]);
}

TEST(Sleep, deadlines_past_and_below_zero_return_soon) {
  int returned = 0;
  const auto ended = run_until_idle({.workers = 1}, [&] {
    for (const auto span : {0ns, -1ns, std::chrono::nanoseconds(-5'000'000'000)})
      returned += coir::sleep(span).has_value();
    for (const auto deadline : {Deadline::now(), Deadline::at_ns(1), Deadline::at_ns(-1)}) {
      returned += coir::sleep_until(deadline).has_value();
    }
  });
  CHECK_TRUE(ended.has_value());
  LONGS_EQUAL(6, returned);
}

TEST(Sleep, very_many_sleep_at_once_and_all_wake) {
  // No more than the board has stacks for, less the one that spawns them.
  const int kFibers =
      std::min(scaled({100'000, 20'000, 1'500, 20'000}), static_cast<int>(coir::port::limits().stacks[0]) - 1);
  std::atomic<int> woken{0}, early{0};
  std::uint32_t armed = 0;
  const auto ended = run_until_idle({.workers = 2}, [&] {
    const Deadline first = Deadline::after(300ms);
    for (int i = 0; i < kFibers; ++i) {
      spawn({.stack = 8 * 1024}, [&woken, &early, first, i] {
        const Deadline mine = Deadline::at_ns(first.ns() + i % 1'000 * 300'000);
        if (coir::sleep_until(mine)) ++woken;
        early += !mine.passed();
      }).detach();
      if (i % 500 != 499) continue;
      coir::yield();
      armed = std::max(armed, coir::stats().timers_armed);
    }
  });
  CHECK_TRUE(ended.has_value());
  LONGS_EQUAL(kFibers, woken);
  LONGS_EQUAL(0, early);
  CHECK_TRUE(armed > 0);
}

// The timer is of the worker that computes until the sleeper has run; the other switches all the time and never polls.
TEST(Sleep, ends_though_its_worker_computes_and_the_other_is_never_idle) {
  if (!coir::kManyWorkers) return;
  std::atomic<bool> over{false};
  std::atomic<int> missed{0};
  CHECK_TRUE(coir::run_until_idle({.workers = 2}, [&] {
               for (int i = 0; i < 2; ++i) {
                 coir::spawn([&] {
                   while (!over) coir::yield();
                 }).detach();
               }
               for (int round = 0; round < 10 && missed == 0; ++round) {
                 std::atomic<bool> slept{false};
                 coir::Fiber burner;
                 coir::Fiber sleeper = coir::spawn([&] {
                   burner = coir::spawn([&] {
                     const coir::Deadline patience = coir::Deadline::after(std::chrono::seconds(20));
                     while (!slept && !patience.passed()) {
                     }
                     missed += !slept;
                   });
                   static_cast<void>(coir::sleep(std::chrono::milliseconds(2)));
                   slept = true;
                 });
                 static_cast<void>(sleeper.join());
                 static_cast<void>(burner.join());
               }
               over = true;
             }).has_value());
  LONGS_EQUAL(0, missed);
}

// A worker whose turn has come wakes no other for the few instructions that follow: the process then wakes up about once
// for each sleep, and once in some looks of the guard.
TEST(Sleep, short_ones_wake_one_worker_each) {
  if (!coir::kManyWorkers || COIR_TSAN) return;  // the thread sanitizer switches threads itself
  constexpr int kSleeps = 300;
  long switches = 0;
  std::int64_t took = 0;
  const auto count = [] {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    return used.ru_nvcsw;
  };
  CHECK_TRUE(run_until_idle({.workers = 2}, [&] {
               static_cast<void>(coir::sleep(20ms));  // both are idle
               const long before = count();
               const std::int64_t start = monotonic_ns();
               for (int i = 0; i < kSleeps; ++i) static_cast<void>(coir::sleep(200us));
               took = monotonic_ns() - start;
               switches = count() - before;
             }).has_value());
  CHECK_COMPARE(switches, <, kSleeps * 5 / 4 + static_cast<long>(took / 900'000));
}

namespace {

// A sleep ends soon if it is no more than half a millisecond later than one of the kernel's own: a busy machine delays both.
bool most_end_soon(bool ppoll) {
  constexpr int kSleeps = 200;
  int soon = 0;
  const auto ended = run_until_idle({.workers = 1, .force_ppoll = ppoll}, [&] {
    for (int i = 0; i < kSleeps; ++i) {
      const int us = 100 + i * 37 % 900;
      const Deadline due = Deadline::after(std::chrono::microseconds(us));
      static_cast<void>(coir::sleep_until(due));
      const std::int64_t late = monotonic_ns() - due.ns();
      const std::int64_t from = monotonic_ns();
      const timespec span{.tv_sec = 0, .tv_nsec = us * 1000};
      nanosleep(&span, nullptr);
      soon += late < monotonic_ns() - from - us * 1000 + 500'000;
    }
  });
  return ended && soon > kSleeps / 2;
}

}  // namespace

// A tick is far below a millisecond.
TEST(Sleep, most_end_within_half_a_millisecond) {
  CHECK_TRUE(most_end_soon(false));
  CHECK_TRUE(most_end_soon(true));
  // Linux has had epoll_pwait2 since 5.11.
  const auto old_kernel = coir::test::in_child([] {
    constexpr unsigned kEpollPwait2 = 441;
    return !coir::test::forget_syscall(kEpollPwait2) || most_end_soon(false) ? 0 : 1;
  });
  LONGS_EQUAL(0, old_kernel.status);
}

}  // namespace sleep_test
