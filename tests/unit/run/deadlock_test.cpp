#include <CppUTest/TestHarness.h>
#include <coir/atomic.h>
#include <coir/fiber.h>
#include <coir/runtime.h>
#include <coir/wait.h>
#include <stdio.h>

#include <atomic>

#include "tests/support/child.h"
#include "tests/support/pipe.h"
#include "tests/support/scale.h"
#include "tests/support/thread.h"

namespace deadlock_test {

using coir::Deadline;
using coir::ErrorCode;
using coir::Fiber;
using coir::run_until_idle;
using coir::spawn;
using coir::test::ChildEnd;
using coir::test::in_child;
using coir::test::Pipe;
using namespace std::chrono_literals;

namespace {

constexpr int kHangLine = __LINE__ + 2;
auto spawn_hanging(bool& cancelled) {
  return spawn({.name = "hanging"}, [&cancelled] { cancelled = !coir::sleep_until(Deadline::never()); });
}

}  // namespace

TEST_GROUP(Deadlock) {};

TEST(Deadlock, is_reported_with_every_fiber_and_what_it_waits_for) {
  for (const unsigned workers : {1u, 2u}) {
    const ChildEnd end = in_child([workers] {
      bool cancelled = false, drained = false;
      const auto ended = run_until_idle({.workers = workers}, [&] {
        // Cancelled itself, or joined to one that the cancellation ended first.
        static_cast<void>(spawn_hanging(cancelled).join());
        drained = true;
      });
      if (ended || ended.error() != ErrorCode::deadlock) return 1;
      return cancelled && drained ? 0 : 2;
    });
    LONGS_EQUAL(0, end.status);
    CHECK_TRUE(end.wrote("deadlock"));
    CHECK_TRUE(end.wrote("2 parked"));
    CHECK_TRUE(end.wrote("\"main\" parked joins fiber "));
    CHECK_TRUE(end.wrote("\"hanging\" parked sleeps for ever"));
    char place[64];
    snprintf(place, sizeof place, "deadlock_test.cpp:%d", kHangLine);
    CHECK_TRUE(end.wrote(place));
    LONGS_EQUAL(3, end.lines());
  }
}

TEST(Deadlock, two_fibers_that_join_each_other_are_one) {
  const ChildEnd end = in_child([] {
    return coir::run({.workers = 2}, [] {
      Fiber first, second;
      std::atomic<bool> both{false};
      std::atomic<int> over{0};
      first = spawn({.name = "first"}, [&] {
        while (!both) coir::yield();
        static_cast<void>(second.join());
        ++over;
      });
      second = spawn({.name = "second"}, [&] {
        while (!both) coir::yield();
        static_cast<void>(first.join());
        ++over;
      });
      both = true;
      static_cast<void>(coir::sleep_until(Deadline::never()));
      while (over < 2) coir::yield();
    });
  });
  LONGS_EQUAL(1, end.status);
  CHECK_TRUE(end.wrote("\"first\" parked joins fiber "));
  CHECK_TRUE(end.wrote("\"second\" parked joins fiber "));
  CHECK_TRUE(end.wrote("the run ended with an error: deadlock"));
}

TEST(Deadlock, a_fiber_that_joins_itself_is_one) {
  const ChildEnd end = in_child([] {
    return coir::run({.workers = 1}, [] {
      Fiber self;
      bool over = false;
      self = spawn({.name = "narcissus"}, [&] {
        static_cast<void>(self.join());
        over = true;
      });
      static_cast<void>(coir::sleep_until(Deadline::never()));
      while (!over) coir::yield();
    });
  });
  LONGS_EQUAL(1, end.status);
  CHECK_TRUE(end.wrote("\"narcissus\" parked joins fiber "));
}

TEST(Deadlock, a_timer_or_a_descriptor_can_still_wake_so_there_is_none) {
  const ChildEnd end = in_child([] {
    return coir::run({.workers = 2}, [] {
      Pipe pipe;
      bool woken = false;
      Fiber sleeper = spawn([&] { static_cast<void>(coir::sleep(20ms)); });
      Fiber reader = spawn([&] { woken = coir::wait(pipe.reader, coir::Direction::readable).has_value(); });
      static_cast<void>(sleeper.join());
      pipe.put();
      static_cast<void>(reader.join());
      return woken ? 0 : 9;
    });
  });
  LONGS_EQUAL(0, end.status);
  STRCMP_EQUAL("", end.output);
}

TEST(Deadlock, the_next_run_starts_afresh) {
  const ChildEnd end = in_child([] {
    bool cancelled = false;
    const auto stuck = run_until_idle({.workers = 1}, [&] { static_cast<void>(spawn_hanging(cancelled).join()); });
    bool slept = false;
    const auto next = run_until_idle({.workers = 1}, [&] { slept = coir::sleep(1ms).has_value(); });
    return !stuck && cancelled && next && slept ? 0 : 1;
  });
  LONGS_EQUAL(0, end.status);
}

TEST(Deadlock, a_plain_thread_can_still_cancel_so_there_is_none) {
  // The thread sanitizer's threads cannot be told from this one: there the sleeper would be called stuck.
  if (coir::test::kThreadSanitized) return;
  const ChildEnd end = in_child([] {
    coir::FiberRef sleeper;
    std::atomic<bool> shown{false};
    coir::test::Thread canceller([&] {
      while (!shown) coir::yield();
      // Until nobody else could wake it: every worker sleeps then.
      const auto polls = [] { return coir::stats().polls; };
      for (std::uint64_t before = 0; polls() == 0 || polls() != before;) {
        before = polls();
        static_cast<void>(coir::sleep(20ms));
      }
      static_cast<void>(sleeper.cancel("outside"));
    });
    bool cancelled = false;
    const auto ended = run_until_idle({.workers = 2}, [&] {
      sleeper = coir::current();
      shown = true;
      cancelled = !coir::sleep_until(Deadline::never());
    });
    canceller.join();
    return ended && cancelled ? 0 : 1;
  });
  LONGS_EQUAL(0, end.status);
  STRCMP_EQUAL("", end.output);
}

}  // namespace deadlock_test
