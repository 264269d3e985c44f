#include <CppUTest/TestHarness.h>
#include <coir/atomic.h>
#include <coir/event.h>
#include <coir/fiber.h>
#include <coir/runtime.h>
#include <coir/select.h>
#include <coir/task.h>

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

TEST(Join, the_first_that_joins_by_one_handle_takes_the_outcome_and_the_others_get_stale) {
  for (const unsigned workers : {1u, 2u}) {
    int taken = 0, stale = 0;
    const auto ended = run_until_idle({.workers = workers}, [&] {
      coir::Event go;
      coir::Task<int> task = spawn([&] { return go.wait() ? 7 : 0; });
      constexpr int kJoiners = 5;
      Fiber joiners[kJoiners];
      std::atomic<int> seven{0}, none{0};
      for (Fiber& joiner : joiners) {
        joiner = spawn([&] {
          const auto got = task.await();
          seven += got && *got == 7;
          none += !got && got.error() == ErrorCode::stale;
        });
      }
      for (const Fiber& joiner : joiners) coir::test::until_parked(joiner);
      go.set();
      for (Fiber& joiner : joiners) static_cast<void>(joiner.join());
      taken = seven;
      stale = none;
    });
    CHECK_TRUE(ended.has_value());
    LONGS_EQUAL(1, taken);
    LONGS_EQUAL(4, stale);
  }
}

// The end comes while some begin to wait for it, by join and by select, and others give up.
TEST(Join, any_number_may_wait_for_the_end_and_each_is_told_once_it_has_come) {
  constexpr int kWatchers = 4;
  constexpr int kRounds = scaled({2'000, 300, 300, 100});
  std::atomic<int> early{0}, missed{0}, failures{0};
  const auto ended = run_until_idle({.workers = 2}, [&] {
    for (int round = 0; round < kRounds; ++round) {
      std::atomic<bool> over{false};
      Fiber target = spawn([&]() -> std::expected<void, coir::Error> {
        for (int i = 0; i < round % 7; ++i) coir::yield();
        over = true;
        return std::unexpected(coir::Error(ErrorCode::temporary));
      });
      Fiber watchers[kWatchers];
      const coir::Case end = coir::Case::ended(target);  // the handle is the joiner's
      for (int i = 0; i < kWatchers; ++i) {
        watchers[i] = spawn([&, i] {
          // Every other gives up at once, and comes again.
          for (bool told = false; !told;) {
            const Deadline soon = i % 2 != 0 ? Deadline::after(10us) : Deadline::never();
            const auto won = coir::select({end}, soon);
            told = won.has_value();
            missed += !told && i % 2 == 0;
            early += told && !over;
          }
        });
      }
      const auto joined = target.join();
      failures += !joined && joined.error() == ErrorCode::temporary;
      early += !over;
      for (Fiber& watcher : watchers) static_cast<void>(watcher.join());
    }
  });
  CHECK_TRUE(ended.has_value());
  LONGS_EQUAL(0, early);
  LONGS_EQUAL(0, missed);
  LONGS_EQUAL(kRounds, failures);
}

TEST(Join, a_watcher_of_the_end_takes_no_failure_over) {
  const auto ended = run_until_idle({.workers = 2}, [&] {
    Fiber target = spawn([]() -> std::expected<void, coir::Error> {
      coir::yield();
      return std::unexpected(coir::Error(ErrorCode::temporary));
    });
    static_cast<void>(coir::select({coir::Case::ended(target)}));
    // The handle is dropped: the failure is the run's.
  });
  CHECK_TRUE(!ended && ended.error() == ErrorCode::temporary);
}

TEST(Join, a_handle_that_is_dropped_tells_those_that_watch_it) {
  for (const unsigned workers : {1u, 2u}) {
    bool told = false, stale = false;
    coir::Event go;  // a fiber that was let go may begin to wait behind the end of those below
    const auto ended = run_until_idle({.workers = workers}, [&] {
      Fiber target = spawn([&] { static_cast<void>(go.wait()); });
      Fiber watcher = spawn([&] { told = coir::select({coir::Case::ended(target)}).has_value(); });
      Fiber joiner = spawn([&] { stale = target.join().error() == ErrorCode::stale; });
      coir::test::until_parked(watcher);
      coir::test::until_parked(joiner);
      target.detach();
      static_cast<void>(watcher.join());
      static_cast<void>(joiner.join());
      go.set();
    });
    CHECK_TRUE(ended.has_value());
    CHECK_TRUE(told);
    CHECK_TRUE(stale);
  }
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
