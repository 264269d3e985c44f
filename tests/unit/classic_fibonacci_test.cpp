#include <CppUTest/TestHarness.h>
#include <coir/atomic.h>
#include <coir/fiber.h>
#include <coir/runtime.h>

#include <algorithm>
#include <atomic>
#include <memory>

#include "board.h"
#include "core/src/worker.h"
#include "tests/support/scale.h"

using coir::kManyWorkers;
using coir::run_until_idle;
using coir::spawn;
using coir::Task;
using coir::operator""_KiB;
using coir::test::scaled;

namespace {

// No more than the board has stacks for.
constexpr int kFibers =
    std::min(scaled({100'000, 20'000, 1'500, 10'000}), static_cast<int>(coir::board::kStackCapacity8) - 1);
constexpr unsigned kWorkers = 2;
constexpr unsigned kFibonacciOf20 = 6'765;

[[gnu::noinline]] unsigned fibonacci(unsigned n) {
  asm volatile("");  // a call each, not a loop that the compiler makes of it
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

std::atomic<int> g_load[kWorkers];

unsigned compute() {
  const unsigned result = fibonacci(20);
  for (int i = 0; i < 10; ++i) {
    g_load[coir::this_worker()->index()].fetch_add(1, std::memory_order_relaxed);
    coir::yield();
  }
  return result;
}

}  // namespace

TEST_GROUP(ClassicFibonacci){};

TEST(ClassicFibonacci, every_result_is_right_and_the_load_is_shared) {
  auto tasks = std::make_unique<Task<unsigned>[]>(kFibers);
  for (auto& load : g_load) load = 0;
  int right = 0;
  const auto ended = run_until_idle({.workers = kWorkers}, [&] {
    for (int i = 0; i < kFibers; ++i) tasks[i] = spawn({.name = "fibonacci", .stack = 8_KiB}, compute);
    for (int i = 0; i < kFibers; ++i) {
      const auto result = tasks[i].await();
      right += result && *result == kFibonacciOf20;
    }
  });
  CHECK_TRUE(ended.has_value());
  LONGS_EQUAL(kFibers, right);
  if (!kManyWorkers) return;
  constexpr int kEven = kFibers * 10 / static_cast<int>(kWorkers);
  for (const auto& load : g_load) {
    CHECK_TRUE(load >= kEven / 2);
    CHECK_TRUE(load <= kEven * 2);
  }
}
