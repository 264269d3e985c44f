#include <CppUTest/TestHarness.h>
#include <coir/cancel_scope.h>
#include <coir/cancellation.h>
#include <coir/fiber.h>
#include <coir/nursery.h>
#include <coir/race.h>
#include <coir/runtime.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <atomic>

#include "tests/support/counted.h"
#include "tests/support/expectations.h"
#include "tests/support/random.h"
#include "tests/support/scale.h"
#include "tests/support/until.h"

namespace nursery_stress_test {

using coir::CancellationSource;
using coir::CancellationWatch;
using coir::CancelScope;
using coir::Deadline;
using coir::Error;
using coir::ErrorCode;
using coir::kManyWorkers;
using coir::Nursery;
using coir::run_until_idle;
using coir::RunOptions;
using coir::Shield;
using coir::spawn;
using coir::Task;
using coir::test::Counted;
using coir::test::Expectations;
using coir::test::Random;
using coir::test::scaled;
using coir::test::until;

namespace {

using Outcome = std::expected<void, Error>;

constexpr int kDepth = 3;
constexpr auto kSpan = std::chrono::milliseconds(scaled({500, 500, 500, 400}));

// Grove grows trees of nurseries: each node opens one, spawns children into it that wait, fail, are cancelled, time out
// or are nodes themselves, and leaves it. This must hold: no child outlives its nursery, a nursery without a failure
// reports none, a node ends, and in the end nothing is left.
struct Grove : Expectations {
  std::atomic<int> nodes{0};
  Deadline end;

  // One that fails, is cancelled or times out returns that.
  Outcome leaf(Random random) {
    switch (random.below(6)) {
      case 0:
        return {};
      case 1:
        coir::yield();
        return std::unexpected(Error(ErrorCode::closed));
      case 2:
        return coir::sleep(random.micros(200));
      case 3: {
        Shield shield(Deadline::after(std::chrono::seconds(60)));
        expect(coir::sleep(random.micros(100)).has_value());
        return {};
      }
      case 4:
        return coir::with_timeout(random.micros(200), [] { return coir::sleep(std::chrono::hours(1)); });
      default:
        for (int i = 0; i < 5 && coir::check_cancelled(); ++i) coir::yield();
        return {};
    }
  }

  void race_in(Random& random) {
    const auto body = [pause = random.micros(100)] {
      static_cast<void>(coir::sleep(pause));
      return Counted(5);
    };
    const auto first = coir::race(body, body);
    if (first) {
      expect(first->number() == 5);
    } else {
      expect(first.error() == ErrorCode::cancelled || first.error() == ErrorCode::timed_out);
    }
  }

  // node returns nothing but what its own nursery reported.
  Outcome node(Random random, int depth) {
    ++nodes;
    CancellationSource source;
    CancelScope scope(random.below(4) == 0 ? Deadline::after(random.micros(500)) : Deadline::never());
    CancellationWatch watch(source.token(), scope);
    // Both are still there when the last child ends.
    std::atomic<int> started{0}, ended{0};
    Outcome outcome;
    {
      Nursery nursery{{.limit = random.below(3)}};
      nursery.defer([&] { expect(started == ended); });
      const std::uint32_t children = random.below(5);
      for (std::uint32_t i = 0; i < children; ++i) {
        auto body = [&, seed = random.split()]() mutable -> Outcome {
          ++started;
          const Outcome one = depth > 0 && seed.below(3) == 0 ? node(seed.split(), depth - 1) : leaf(seed.split());
          ++ended;
          return one;
        };
        Task<void> child = random.below(2) == 0 ? nursery.spawn(body) : nursery.try_spawn(body);
        switch (random.below(6)) {
          case 0: {
            const Outcome own =
                child.await(random.below(2) == 0 ? Deadline::never() : Deadline::after(random.micros(100)));
            if (!own && own.error() == ErrorCode::timed_out && child.started()) static_cast<void>(child.cancel());
            break;
          }
          case 1:
            static_cast<void>(child.cancel("not wanted"));
            break;
          case 2:
            if (random.below(4) == 0) source.cancel();
            break;
          case 3:
            if (random.below(4) == 0) nursery.cancel();
            break;
          case 4:
            static_cast<void>(coir::sleep(random.micros(100)));
            break;
          default:
            break;
        }
        if (random.below(8) == 0) race_in(random);
      }
      outcome = nursery.join();
      expect(started == ended);
    }
    return outcome;
  }

  void grow(std::uint64_t seed) {
    Random random{seed | 1};
    while (!end.passed()) {
      // One that fails leaves its failure in its own nursery.
      Task<void> tree = spawn({.stack = 32 * 1024}, [this, lives = random.split()] { return node(lives, kDepth); });
      if (random.below(4) == 0) {
        static_cast<void>(coir::sleep(random.micros(300)));
        static_cast<void>(tree.cancel());
      }
      static_cast<void>(tree.await());
      expect(!tree.started());
    }
  }
};

struct Planter {
  Grove* grove;
  std::uint64_t seed;
  std::atomic<bool> over{false};
  static void* main(void* argument) {
    auto& self = *static_cast<Planter*>(argument);
    Random random{self.seed | 1};
    while (!self.grove->end.passed()) static_cast<void>(self.grove->node(random.split(), 1));
    self.over = true;
    return nullptr;
  }
};

void run_grove(RunOptions options) {
  const char* const given = getenv("COIR_STRESS_SEED");
  const std::uint64_t seed =
      given != nullptr ? strtoull(given, nullptr, 10) : static_cast<std::uint64_t>(coir::monotonic_ns());
  char label[160];
  snprintf(label, sizeof label, "COIR_STRESS_SEED=%llu, %u workers%s", static_cast<unsigned long long>(seed),
           options.workers, options.migrate ? ", migrating" : "");
  Counted::reset();
  Grove grove;
  options.default_stack = 32 * 1024;
  const auto ended = run_until_idle(options, [&] {
    grove.end = Deadline::after(kSpan);
    const bool threads = kManyWorkers && options.seed == 0;
    Planter planter{&grove, seed ^ 0x5555};
    pthread_t thread;
    if (threads) pthread_create(&thread, nullptr, Planter::main, &planter);
    {
      Nursery nursery;
      for (std::uint64_t i = 0; i < 8; ++i)
        static_cast<void>(spawn([&grove, seed, i] { grove.grow(seed + i * 0x9e3779b97f4a7c15u); }));
      grove.expect(nursery.join().has_value());
    }
    until([&] { return !threads || planter.over; });
    if (threads) pthread_join(thread, nullptr);
    until([] { return coir::stats().fibers_alive == 1; });
    grove.expect(coir::stats().timers_armed == 0);
  });
  grove.check(label);
  if (!ended || Counted::alive() != 0) {
    FAIL(StringFromFormat("%s: %d values left", label, Counted::alive()).asCharString());
  }
  CHECK_TRUE(grove.nodes > 10);
}

}  // namespace

// Trees of nurseries in a random mix of failures, cancellations and deadlines, fibers and a plain thread side by side.
// A failure prints the seed of its mix; the interleaving is the machine's.
TEST_GROUP(NurseryStress) {};

TEST(NurseryStress, of_one_worker) {
  run_grove({.workers = 1});
}
TEST(NurseryStress, of_two_workers) {
  run_grove({.workers = 2});
}
TEST(NurseryStress, of_four_workers_with_few_hot_stacks) {
  run_grove({.workers = 4, .hot_stacks = 4});
}
TEST(NurseryStress, of_three_workers_that_migrate_everything) {
  run_grove({.workers = 3, .migrate = true});
}
TEST(NurseryStress, of_a_seeded_schedule) {
  run_grove({.workers = 1, .seed = 12345});
}

}  // namespace nursery_stress_test
