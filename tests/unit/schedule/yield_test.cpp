#include <CppUTest/TestHarness.h>
#include <coir/fiber.h>
#include <coir/runtime.h>

#include <algorithm>

namespace yield_test {

using coir::Fiber;
using coir::run_until_idle;
using coir::spawn;
using namespace std::chrono_literals;

namespace {

// Progress is how far each of many yielding fibers has come.
struct Progress {
  static constexpr int kMost = 1'500;
  int steps[kMost] = {};
  int spread = 0;  // how far the first ever was before the last

  void run(int fibers, int yields) {
    for (int i = 0; i < fibers; ++i) {
      spawn([this, i, fibers, yields] {
        for (int k = 0; k < yields; ++k) {
          ++steps[i];
          if (i == 0) note(fibers);
          coir::yield();
        }
      }).detach();
    }
  }
  void note(int fibers) {
    const auto [least, most] = std::minmax_element(steps, steps + fibers);
    spread = std::max(spread, *most - *least);
  }
};

}  // namespace

TEST_GROUP(Yield) {};

TEST(Yield, goes_round_in_the_order_of_spawning) {
  constexpr int kFibers = 40, kRounds = 50;
  static int order[kFibers * kRounds];
  int next = 0;
  const auto ended = run_until_idle({.workers = 1}, [&] {
    for (int i = 0; i < kFibers; ++i) {
      spawn([&next, i] {
        for (int round = 0; round < kRounds; ++round) {
          order[next++] = i;
          coir::yield();
        }
      }).detach();
    }
  });
  CHECK_TRUE(ended.has_value());
  LONGS_EQUAL(kFibers * kRounds, next);
  for (int i = 0; i < kFibers * kRounds; ++i) LONGS_EQUAL(i % kFibers, order[i]);
}

TEST(Yield, none_of_a_few_gets_ahead_of_the_others) {
  Progress progress;
  CHECK_TRUE(run_until_idle({.workers = 1}, [&] { progress.run(200, 100); }).has_value());
  CHECK_TRUE(progress.spread <= 1);
}

// More than a worker's ring holds: the overflow must not be left behind.
TEST(Yield, none_of_very_many_is_left_behind) {
  Progress progress;
  CHECK_TRUE(run_until_idle({.workers = 1}, [&] { progress.run(Progress::kMost, 100); }).has_value());
  CHECK_TRUE(progress.spread <= 1);
}

TEST(Yield, alone_it_returns) {
  int rounds = 0;
  const auto ended = run_until_idle({.workers = 2}, [&] {
    for (; rounds < 10'000; ++rounds) coir::yield();
  });
  CHECK_TRUE(ended.has_value());
  LONGS_EQUAL(10'000, rounds);
}

TEST(Yield, a_fiber_that_only_yields_holds_up_no_timer) {
  bool woken = false;
  const auto ended = run_until_idle({.workers = 1}, [&] {
    spawn([&] {
      static_cast<void>(coir::sleep(2ms));
      woken = true;
    }).detach();
    while (!woken) coir::yield();
  });
  CHECK_TRUE(ended.has_value());
  CHECK_TRUE(woken);
}

// Two fibers that hand a task to each other by joins take the short way past the line, but not for ever.
TEST(Yield, a_pair_that_wakes_each_other_starves_nobody) {
  int bystander = 0;
  const auto ended = run_until_idle({.workers = 1}, [&] {
    bool over = false;
    Fiber watcher = spawn([&] {
      while (!over) {
        ++bystander;
        coir::yield();
      }
    });
    for (int i = 0; i < 10'000; ++i) static_cast<void>(spawn([] {}).join());
    over = true;
    static_cast<void>(watcher.join());
  });
  CHECK_TRUE(ended.has_value());
  CHECK_TRUE(bystander > 1'000);
}

TEST(Yield, on_a_plain_thread_it_returns) {
  coir::yield();
}

}  // namespace yield_test
