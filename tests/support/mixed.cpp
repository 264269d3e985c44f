#include "mixed.h"

#include <CppUTest/TestHarness.h>
#include <coir/atomic.h>
#include <coir/fiber.h>
#include <coir/program.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <memory>

#include "scale.h"
#include "thread.h"

namespace coir::test {

namespace {

constexpr int kFibers = 12;
constexpr int kThreads = kManyWorkers ? 3 : 0;
constexpr int kThreadSlowness = 4;  // to wake one takes the kernel, and on a busy machine its time
constexpr int kSteps = scaled({600, 200, 150, 120});
constexpr std::uint64_t kSpread = 0x9e3779b97f4a7c15u;

}  // namespace

bool cannot_see_threads() noexcept {
  if (!kManyWorkers) return false;
  struct stat tasks{};
  return kThreadSanitized || stat("/proc/self/task", &tasks) != 0 || tasks.st_nlink != 3;
}

Mixed::Mixed(const char* what, int slowness) noexcept : what_(what), slowness_(slowness) {
  const char* const given = getenv("COIR_STRESS_SEED");
  seed_ = given != nullptr ? strtoull(given, nullptr, 10) : 20'260'101;
}

void Mixed::run_all(Erased step, void* argument) {
  run_once({.workers = 1}, step, argument);
  run_once({.workers = 2}, step, argument);
  run_once({.workers = 3, .migrate = true}, step, argument);
  run_once({.workers = 1, .seed = seed_}, step, argument);
}

void Mixed::run_once(const RunOptions& options, Erased step, void* argument) {
  char label[120];
  snprintf(label, sizeof label, "%s: COIR_STRESS_SEED=%llu, %u workers%s%s", what_,
           static_cast<unsigned long long>(seed_), options.workers, options.migrate ? ", migrating" : "",
           options.seed != 0 ? ", seeded" : "");
  const int before = wrong();
  const int steps = kSteps / slowness_;
  std::unique_ptr<Thread> threads[kThreads + 1];
  const auto ended = run_until_idle(options, [&] {
    Fiber fibers[kFibers];
    for (unsigned i = 0; i < kThreads; ++i) {
      threads[i] = std::make_unique<Thread>([this, i, steps, step, argument] {
        Random random{seed_ + (100 + i) * kSpread};
        for (int n = 0; n < steps / kThreadSlowness; ++n) step(argument, random);
      });
    }
    for (unsigned i = 0; i < kFibers; ++i) {
      fibers[i] = spawn([this, i, steps, step, argument] {
        Random random{seed_ + i * kSpread};
        for (int n = 0; n < steps && !cancelled(); ++n) step(argument, random);
      });
    }
    Random random{seed_ + 50 * kSpread};
    for (int i = 0; i < kFibers; i += 4) {
      static_cast<void>(sleep(random.micros(3'000)));
      static_cast<void>(fibers[i].cancel());
    }
    for (Fiber& fiber : fibers) expect(fiber.join().has_value());
  });
  for (auto& thread : threads) thread.reset();
  expect(ended.has_value());
  if (wrong() != before) fprintf(stderr, "%s: %d wrong\n", label, wrong() - before);
}

void Mixed::check() const {
  char label[120];
  snprintf(label, sizeof label, "%s with COIR_STRESS_SEED=%llu", what_, static_cast<unsigned long long>(seed_));
  Expectations::check(label);
}

}  // namespace coir::test
