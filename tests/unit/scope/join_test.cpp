#include <CppUTest/TestHarness.h>
#include <coir/atomic.h>
#include <coir/fiber.h>
#include <coir/runtime.h>

#include <atomic>

#include "tests/support/scale.h"
#include "tests/support/thread.h"
#include "tests/support/until.h"

namespace join_test {

using coir::Deadline;
using coir::ErrorCode;
using coir::Fiber;
using coir::kManyWorkers;
using coir::run_until_idle;
using coir::spawn;
using coir::test::scaled;
using coir::test::Thread;
using coir::test::until;
using namespace std::chrono_literals;

TEST_GROUP(Join) {};

TEST(Join, waits_for_the_end_and_sees_what_was_done) {
  int seen = 0;
  const auto ended = run_until_idle({.workers = 2}, [&] {
    int work = 0;
    Fiber fiber = spawn([&work] {
      for (int i = 0; i < 100; ++i) {
        ++work;
        coir::yield();
      }
    });
    if (fiber.join()) seen = work;
  });
  CHECK_TRUE(ended.has_value());
  LONGS_EQUAL(100, seen);
}

TEST(Join, a_second_one_is_stale) {
  bool first = false, stale = false, empty = false;
  const auto ended = run_until_idle({.workers = 1}, [&] {
    Fiber fiber = spawn([] {});
    first = fiber.join().has_value();
    empty = !fiber.started() && fiber.id() == 0;
    const auto again = fiber.join();
    stale = !again && again.error() == ErrorCode::stale;
  });
  CHECK_TRUE(ended.has_value());
  CHECK_TRUE(first);
  CHECK_TRUE(empty);
  CHECK_TRUE(stale);
}

TEST(Join, a_handle_that_was_moved_from_is_stale) {
  bool stale = false, joined = false;
  const auto ended = run_until_idle({.workers = 1}, [&] {
    Fiber fiber = spawn([] {});
    Fiber other = std::move(fiber);
    const auto from = fiber.join();
    stale = !from && from.error() == ErrorCode::stale;
    joined = other.join().has_value();
  });
  CHECK_TRUE(ended.has_value());
  CHECK_TRUE(stale);
  CHECK_TRUE(joined);
}

TEST(Join, times_out_not_early_and_may_be_repeated) {
  bool timed_out = false, early = true, joined = false;
  const auto ended = run_until_idle({.workers = 2}, [&] {
    std::atomic<bool> go{false};
    Fiber fiber = spawn([&go] {
      while (!go) coir::yield();
    });
    const Deadline deadline = Deadline::after(5ms);
    const auto first = fiber.join(deadline);
    early = !deadline.passed();
    timed_out = !first && first.error() == ErrorCode::timed_out;
    go = true;
    joined = fiber.join().has_value();
  });
  CHECK_TRUE(ended.has_value());
  CHECK_TRUE(timed_out);
  CHECK_FALSE(early);
  CHECK_TRUE(joined);
}

TEST(Join, with_a_deadline_that_has_passed_it_still_finds_an_ended_fiber) {
  bool joined = false;
  const auto ended = run_until_idle({.workers = 1}, [&] {
    Fiber fiber = spawn([] {});
    coir::yield();
    joined = fiber.join(Deadline::now()).has_value();
  });
  CHECK_TRUE(ended.has_value());
  CHECK_TRUE(joined);
}

TEST(Join, a_cancelled_joiner_gives_up_and_leaves_the_fiber_joinable) {
  bool cancelled = false, joined = false;
  const auto ended = run_until_idle({.workers = 2}, [&] {
    Fiber target = spawn([] { static_cast<void>(coir::sleep(24h)); });
    Fiber joiner = spawn([&] {
      const auto outcome = target.join();
      cancelled = !outcome && outcome.error() == ErrorCode::cancelled;
    });
    coir::yield();
    static_cast<void>(joiner.cancel());
    static_cast<void>(joiner.join());
    static_cast<void>(target.cancel());
    joined = target.join().has_value();
  });
  CHECK_TRUE(ended.has_value());
  CHECK_TRUE(cancelled);
  CHECK_TRUE(joined);
}

TEST(Join, a_second_joiner_at_a_time_is_busy) {
  bool busy = false, joined = false;
  const auto ended = run_until_idle({.workers = 1}, [&] {
    Fiber target = spawn([] { static_cast<void>(coir::sleep(24h)); });
    Fiber joiner = spawn([&] { joined = target.join().has_value(); });
    coir::yield();
    const auto second = target.join();
    busy = !second && second.error() == ErrorCode::busy;
    static_cast<void>(target.cancel());
    static_cast<void>(joiner.join());
  });
  CHECK_TRUE(ended.has_value());
  CHECK_TRUE(busy);
  CHECK_TRUE(joined);
}

TEST(Join, dropping_the_handle_lets_the_fiber_go_on) {
  bool reached = false;
  const auto ended = run_until_idle({.workers = 2}, [&] {
    static_cast<void>(spawn([&, spawner = coir::current()] {
      until([&] { return !spawner.alive(); });
      reached = true;
    }));
  });
  CHECK_TRUE(ended.has_value());
  CHECK_TRUE(reached);
}

TEST(Join, a_chain_of_joiners_unwinds_from_its_end) {
  constexpr int kDepth = 200;
  static int order[kDepth];
  int next = 0;
  struct Chain {
    static void go(int depth, int& position) {
      if (depth + 1 < kDepth) static_cast<void>(spawn([depth, &position] { go(depth + 1, position); }).join());
      order[depth] = position++;
    }
  };
  const auto ended = run_until_idle({.workers = 2}, [&] { Chain::go(0, next); });
  CHECK_TRUE(ended.has_value());
  for (int i = 0; i < kDepth; ++i) LONGS_EQUAL(kDepth - 1 - i, order[i]);
}

// The stack of a joined fiber is the next one's: what a joiner reads after the join must not be torn.
TEST(Join, every_end_meets_its_joiner_wherever_either_runs) {
  constexpr int kRounds = scaled({20'000, 5'000, 3'000, 3'000});
  for (const unsigned workers : {1u, 2u, 4u}) {
    int wrong = 0;
    const auto ended = run_until_idle({.workers = workers}, [&] {
      for (int i = 0; i < kRounds; ++i) {
        Fiber pair[2];
        int done[2] = {};
        for (int k = 0; k < 2; ++k) {
          pair[k] = spawn([&done, k, i] {
            if (i % 3 == k) coir::yield();
            done[k] = i + 1;
          });
        }
        for (int k = 1; k >= 0; --k) wrong += !pair[k].join() || done[k] != i + 1;
      }
    });
    CHECK_TRUE(ended.has_value());
    LONGS_EQUAL(0, wrong);
  }
}

namespace {

struct FromThread {
  Fiber fiber;
  std::atomic<bool> go{false}, asleep{false}, over{false};
  bool timed_out = false, joined = false;

  void join() {
    const auto first = fiber.join(Deadline::after(2ms));
    timed_out = !first && first.error() == ErrorCode::timed_out;
    go = true;
    joined = fiber.join().has_value();
    over = true;
  }
};

}  // namespace

TEST(Join, a_plain_thread_times_out_repeats_and_is_woken_by_the_end) {
  if (!kManyWorkers) return;
  FromThread from;
  const auto ended = run_until_idle({.workers = 2}, [&] {
    from.fiber = spawn([&from] { until([&] { return from.asleep.load(); }); });
    Thread thread([&from] { from.join(); });
    until([&] { return from.go.load(); });
    thread.until_blocked();
    from.asleep = true;
    until([&] { return from.over.load(); });
  });
  CHECK_TRUE(ended.has_value());
  CHECK_TRUE(from.timed_out);
  CHECK_TRUE(from.joined);
}

}  // namespace join_test
