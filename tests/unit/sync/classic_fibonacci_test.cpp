#include <CppUTest/TestHarness.h>
#include <coir/atomic.h>
#include <coir/fiber.h>
#include <coir/port/limits.h>
#include <coir/runtime.h>
#include <time.h>

#include <algorithm>
#include <memory>

#include "core/src/schedule/worker.h"
#include "tests/support/scale.h"

namespace classic_fibonacci_test {

using coir::kManyWorkers;
using coir::run_until_idle;
using coir::spawn;
using coir::Task;
using coir::operator""_KiB;
using coir::test::scaled;

namespace {

// No more than the board has stacks for.
const int kFibers =
    std::min(scaled({100'000, 20'000, 1'500, 10'000}), static_cast<int>(coir::port::limits().stacks[0]) - 1);
constexpr unsigned kWorkers = 2;
constexpr unsigned kFibonacciOf20 = 6'765;

[[gnu::noinline]] unsigned fibonacci(unsigned n) {
  asm volatile("");  // a call each, not a loop that the compiler makes of it
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

// Load is the processor time that a worker's thread has taken from the beginning of the run, or its own, to the end of the last
// fiber there: making fibers is a load, too, and may leave the computing to the other worker. Only that worker writes it.
struct Load {
  std::int64_t first_ns = 0, last_ns = 0;
  std::int64_t ns() const { return last_ns - first_ns; }
} g_load[kWorkers];

Load& own_load() {
  return g_load[coir::this_worker()->index()];
}

std::int64_t thread_ns() {
  timespec now;
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

unsigned compute() {
  const unsigned result = fibonacci(20);
  for (int i = 0; i < 10; ++i) coir::yield();
  own_load().last_ns = thread_ns();
  return result;
}

// One run of so many fibers; false when a result was wrong or the run did not end.
bool every_result_is_right(int fibers) {
  const auto tasks = std::make_unique<Task<unsigned>[]>(fibers);
  for (auto& load : g_load) load = {};
  int right = 0;
  const auto ended = run_until_idle({.workers = kWorkers}, [&] {
    own_load().first_ns = thread_ns();
    for (int i = 0; i < fibers; ++i) tasks[i] = spawn({.name = "fibonacci", .stack = 8_KiB}, compute);
    for (int i = 0; i < fibers; ++i) {
      const auto result = tasks[i].await();
      right += result && *result == kFibonacciOf20;
    }
  });
  return ended.has_value() && right == fibers;
}

bool load_is_shared() {
  const auto [least, most] = std::ranges::minmax(g_load, {}, &Load::ns);
  return least.ns() * 3 >= most.ns();
}

}  // namespace

TEST_GROUP(ClassicFibonacci) {};

// The workers share what the machine gives them: a machine that takes a processor away for most of a run makes that
// run uneven, but not one run after the other. Stealing that does not work makes all of them uneven. Those behind the first
// are short: on a machine that is so busy eight whole ones would take minutes.
TEST(ClassicFibonacci, every_result_is_right_and_the_load_is_shared) {
  constexpr int kRuns = 8;
  bool shared = false;
  for (int run = 0; run < kRuns && !shared; ++run) {
    const int fibers = run == 0 ? kFibers : kFibers / 8;
    CHECK_TRUE(every_result_is_right(fibers));
    shared = !kManyWorkers || load_is_shared();
  }
  CHECK_TRUE(shared);
}

}  // namespace classic_fibonacci_test
