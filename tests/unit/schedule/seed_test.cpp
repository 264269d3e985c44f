#include <CppUTest/TestHarness.h>
#include <coir/fiber.h>
#include <coir/runtime.h>
#include <stdlib.h>

#include <cstring>

namespace seed_test {

using coir::Fiber;
using coir::run_until_idle;
using coir::spawn;

namespace {

constexpr int kFibers = 20, kSteps = 15;

// Order is which fiber took which step, of a run that spawns, yields, joins and cancels.
struct Order {
  int steps[kFibers * kSteps] = {};
  int count = 0;

  void note(int fiber) { steps[count++] = fiber; }

  bool record(std::uint64_t seed) {
    count = 0;
    return run_until_idle({.seed = seed},
                          [this] {
                            Fiber fibers[kFibers];
                            for (int i = 0; i < kFibers; ++i) {
                              fibers[i] = spawn([this, i] {
                                for (int k = 0; k < kSteps; ++k) {
                                  note(i);
                                  if (k % 5 == 2) {
                                    static_cast<void>(spawn([] { coir::yield(); }).join());
                                  } else {
                                    coir::yield();
                                  }
                                }
                              });
                            }
                            for (Fiber& each : fibers) static_cast<void>(each.join());
                          })
        .has_value();
  }
  friend bool operator==(const Order& a, const Order& b) {
    return a.count == b.count && std::memcmp(a.steps, b.steps, sizeof a.steps) == 0;
  }
};

}  // namespace

TEST_GROUP(Seed) {
  Order first, second;
};

TEST(Seed, the_same_one_gives_the_same_order) {
  for (const std::uint64_t seed : {1u, 2u, 42u, 0xdeadbeefu}) {
    CHECK_TRUE(first.record(seed));
    LONGS_EQUAL(kFibers * kSteps, first.count);
    for (int again = 0; again < 5; ++again) {
      CHECK_TRUE(second.record(seed));
      CHECK_TRUE(first == second);
    }
  }
}

TEST(Seed, different_ones_give_different_orders) {
  CHECK_TRUE(first.record(1));
  int same = 0;
  for (std::uint64_t seed = 2; seed < 30; ++seed) {
    CHECK_TRUE(second.record(seed));
    same += first == second;
  }
  LONGS_EQUAL(0, same);
}

TEST(Seed, the_environment_may_give_it) {
  CHECK_TRUE(first.record(77));
  setenv("COIR_SEED", "77", 1);
  CHECK_TRUE(second.record(0));
  unsetenv("COIR_SEED");
  CHECK_TRUE(first == second);
}

TEST(Seed, it_runs_one_worker) {
  unsigned workers = 0;
  CHECK_TRUE(run_until_idle({.workers = 4, .seed = 5}, [&] { workers = coir::stats().workers; }).has_value());
  LONGS_EQUAL(1, workers);
}

}  // namespace seed_test
