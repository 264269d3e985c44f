#include <CppUTest/TestHarness.h>
#include <coir/fiber.h>
#include <coir/runtime.h>
#include <coir/wait.h>
#include <stdio.h>
#include <stdlib.h>

#include <atomic>
#include <memory>

#include "tests/support/counted.h"
#include "tests/support/expectations.h"
#include "tests/support/pipe.h"
#include "tests/support/random.h"
#include "tests/support/scale.h"
#include "tests/support/until.h"

namespace stress_test {

using coir::Deadline;
using coir::Direction;
using coir::ErrorCode;
using coir::Fiber;
using coir::run_until_idle;
using coir::RunOptions;
using coir::spawn;
using coir::Task;
using coir::test::count_fds;
using coir::test::Counted;
using coir::test::Expectations;
using coir::test::Pipe;
using coir::test::Random;
using coir::test::scaled;
using coir::test::until;

namespace {

constexpr int kFibers = scaled({60, 40, 40, 30});
constexpr auto kSpan = std::chrono::milliseconds(scaled({700, 700, 700, 700}));

// Chaos is many fibers, each of which does one random thing after the other and checks what must hold of it.
struct Chaos : Expectations {
  std::atomic<int> steps{0};
  Deadline end;

  void join_child(Random& random) {
    Task<Counted> child = spawn([pause = random.micros(300), number = random.below(1'000)] {
      for (std::uint32_t i = 0; i < number % 4; ++i) coir::yield();
      if (number % 2 == 0) static_cast<void>(coir::sleep(pause));
      return Counted(static_cast<int>(number));
    });
    std::uint32_t patience = random.below(3);
    for (;;) {
      const auto value = child.await(patience-- == 0 ? Deadline::never() : Deadline::after(random.micros(200)));
      if (value) return expect(value->number() >= 0 && value->number() < 1'000);
      if (value.error() == ErrorCode::cancelled) return;  // the child is dropped
      expect(value.error() == ErrorCode::timed_out);
      if (patience > 3) patience = 0;
    }
  }

  void cancel_child(Random& random) {
    std::atomic<int> ended{0};
    Fiber child = spawn([this, &ended, number = random.below(3)] {
      if (number == 0) coir::yield();
      const auto slept = coir::sleep(std::chrono::hours(1));
      expect(!slept && slept.error() == ErrorCode::cancelled);
      ++ended;
    });
    if (random.below(2) == 0) coir::yield();
    expect(child.cancel().has_value());
    // The frame that the child writes to stays until it has ended, even if this fiber is cancelled.
    while (!child.join() && ended == 0) coir::yield();
  }

  void talk(Random& random) {
    Pipe pipe(random.below(2) == 0 ? Pipe::Kind::pipe : Pipe::Kind::sockets);
    const std::uint32_t messages = 1 + random.below(20);
    std::atomic<bool> over{false};
    Fiber writer = spawn([&pipe, &over, messages] {
      for (std::uint32_t i = 0; i < messages; ++i) {
        pipe.put(static_cast<char>(i));
        if (i % 3 == 0) coir::yield();
      }
      pipe.close_writer();
      over = true;
    });
    std::uint32_t next = 0;
    for (;;) {
      char byte;
      const ssize_t n = read(pipe.reader, &byte, 1);
      if (n == 0) {
        expect(next == messages);
        break;
      }
      if (n == 1) {
        expect(byte == static_cast<char>(next));
        ++next;
      } else if (const auto ready =
                     coir::wait(pipe.reader, Direction::readable, Deadline::after(std::chrono::seconds(30)));
                 !ready) {
        expect(ready.error() == ErrorCode::cancelled);
        break;
      }
    }
    while (!over) coir::yield();
    static_cast<void>(writer.join());
  }

  void step(Random& random) {
    ++steps;
    switch (random.below(7)) {
      case 0:
        return coir::yield();
      case 1:
        return static_cast<void>(coir::sleep(random.micros(400)));
      case 2:
        return join_child(random);
      case 3:
        return cancel_child(random);
      case 4:
        return talk(random);
      case 5:
        return spawn([this] {
                 ++steps;
                 coir::yield();
               })
            .detach();
      case 6: {
        Task<Counted> dropped = spawn([] {
          coir::yield();
          return Counted(3);
        });
        return;
      }
    }
  }

  void live(std::uint64_t seed) {
    Random random{seed};
    while (!end.passed()) {
      // A generation: a fiber that is cancelled in the middle of its steps ends, and the next one takes its place.
      Fiber generation = spawn([this, lives = Random{random.state}]() mutable {
        for (int i = 0; i < 10 && !coir::cancelled(); ++i) step(lives);
      });
      if (random.below(4) == 0) {
        static_cast<void>(coir::sleep(random.micros(500)));
        static_cast<void>(generation.cancel());
      }
      expect(generation.join().has_value());
    }
  }
};

void run_chaos(RunOptions options) {
  const char* const given = getenv("COIR_STRESS_SEED");
  const std::uint64_t seed =
      given != nullptr ? strtoull(given, nullptr, 10) : static_cast<std::uint64_t>(coir::monotonic_ns());
  char label[160];
  snprintf(label, sizeof label, "COIR_STRESS_SEED=%llu, %u workers, %s%s", static_cast<unsigned long long>(seed),
           options.workers, options.migrate ? "migrating, " : "", options.force_ppoll ? "ppoll" : "epoll");
  Counted::reset();
  const int fds = count_fds();
  Chaos chaos;
  const auto ended = run_until_idle(options, [&] {
    chaos.end = Deadline::after(kSpan);
    auto fibers = std::make_unique<Fiber[]>(kFibers);
    for (unsigned i = 0; i < kFibers; ++i)
      fibers[i] = spawn([&chaos, seed, i] { chaos.live(seed + i * 0x9e3779b97f4a7c15u); });
    for (int i = 0; i < kFibers; ++i) chaos.expect(fibers[i].join().has_value());
    until([] { return coir::stats().fibers_alive == 1; });
    chaos.expect(coir::stats().fd_waits == 0 && coir::stats().timers_armed == 0);
  });
  chaos.check(label);
  if (!ended || Counted::alive() != 0 || (count_fds() != fds && !coir::test::kThreadSanitized)) {
    FAIL(StringFromFormat("%s: %d values left, %d descriptors left", label, Counted::alive(), count_fds() - fds)
             .asCharString());
  }
  CHECK_TRUE(chaos.steps > kFibers);
}

}  // namespace

// Spawns, joins, cancellations, yields, sleeps and pipes in a random mix. A failure prints the seed of its mix; the
// interleaving is the machine's.
TEST_GROUP(Stress) {};

TEST(Stress, of_one_worker) {
  run_chaos({.workers = 1});
}
TEST(Stress, of_two_workers) {
  run_chaos({.workers = 2});
}
TEST(Stress, of_four_workers_with_few_hot_stacks) {
  run_chaos({.workers = 4, .hot_stacks = 4});
}
TEST(Stress, of_two_workers_with_ppoll) {
  run_chaos({.workers = 2, .force_ppoll = true});
}
TEST(Stress, of_three_workers_that_migrate_everything) {
  run_chaos({.workers = 3, .migrate = true});
}
TEST(Stress, of_two_workers_that_migrate_everything_with_ppoll) {
  run_chaos({.workers = 2, .force_ppoll = true, .migrate = true});
}
TEST(Stress, of_a_seeded_schedule) {
  run_chaos({.workers = 1, .seed = 12345});
}

}  // namespace stress_test
