#include <CppUTest/TestHarness.h>
#include <coir/atomic.h>
#include <coir/fiber.h>
#include <coir/ledger.h>
#include <coir/runtime.h>

#include <atomic>
#include <optional>

#include "tests/support/scale.h"
#include "tests/support/thread.h"

namespace handle_outside_test {

using coir::Error;
using coir::ErrorCode;
using coir::kManyWorkers;
using coir::run_until_idle;
using coir::spawn;
using coir::Task;
using coir::test::scaled;
using coir::test::Thread;

namespace {

constexpr int kAnswer = 42;

// A plain thread uses the handle of a run's last fiber, while that fiber and the run end.
template <class Use>
void with_the_last_handle_of_a_run(int spins, Use use) {
  Task<int> task;
  std::atomic<bool> given = false;
  Thread thread([&] {
    while (!given.load(std::memory_order_acquire)) {
    }
    for (volatile int i = 0; i < spins; i = i + 1) {
    }
    use(task);
  });
  static_cast<void>(run_until_idle({.workers = 2}, [&] {
    task = spawn([] {
      coir::yield();
      return kAnswer;
    });
    given.store(true, std::memory_order_release);
  }));
  thread.join();
}

int rounds() {
  return scaled({1'000, 400, 100, 400});
}

}  // namespace

TEST_GROUP(HandleOutside) {  // A handle of a run that has ended takes no stack with it.
  void teardown() override { LONGS_EQUAL(0, coir::account::stacks.used()); }
};

TEST(HandleOutside, awaits_the_last_fiber_of_a_run_or_finds_the_run_over) {
  if (!kManyWorkers) return;
  int awaited = 0, over = 0, other = 0;
  for (int round = 0; round < rounds(); ++round) {
    with_the_last_handle_of_a_run(round % 64 * 16, [&](Task<int>& task) {
      const auto result = task.await();
      if (result && *result == kAnswer) {
        ++awaited;
      } else if (!result && result.error() == ErrorCode::stale) {
        ++over;
      } else {
        ++other;
      }
    });
  }
  LONGS_EQUAL(0, other);
  LONGS_EQUAL(rounds(), awaited + over);
}

TEST(HandleOutside, that_is_dropped_while_its_run_ends_leaves_the_pool_as_it_was) {
  if (!kManyWorkers) return;
  for (int round = 0; round < rounds(); ++round) {
    with_the_last_handle_of_a_run(round % 64 * 16, [](Task<int>& task) { const Task<int> dropped = std::move(task); });
  }
  CHECK_TRUE(run_until_idle({.workers = 2}, [] { static_cast<void>(spawn([] {}).join()); }).has_value());
}

// A plain thread that drops the handle of a failed fiber at the run's end tells the run its failure, or is too late: the
// run never reads half of it.
TEST(HandleOutside, of_a_failed_fiber_that_is_dropped_at_the_end_fails_the_run_or_does_not) {
  if (!kManyWorkers) return;
  int whole = 0, late = 0, other = 0;
  for (int round = 0; round < rounds(); ++round) {
    Task<int> task;
    std::atomic<bool> given = false;
    Thread thread([&] {
      while (!given.load(std::memory_order_acquire)) {
      }
      for (volatile int i = 0; i < round % 64 * 16; i = i + 1) {
      }
      const Task<int> dropped = std::move(task);
    });
    const auto ended = run_until_idle({.workers = 2}, [&] {
      task = spawn([]() -> std::expected<int, Error> { return std::unexpected(Error(ErrorCode::protocol, kAnswer)); });
      given.store(true, std::memory_order_release);
    });
    thread.join();
    if (ended) {
      ++late;
    } else if (ended.error() == ErrorCode::protocol && ended.error().sys == kAnswer) {
      ++whole;
    } else {
      ++other;
    }
  }
  LONGS_EQUAL(0, other);
  LONGS_EQUAL(rounds(), whole + late);
}

}  // namespace handle_outside_test
