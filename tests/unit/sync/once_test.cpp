#include <coir/once.h>

#include <CppUTest/TestHarness.h>
#include <coir/event.h>
#include <coir/fiber.h>
#include <coir/runtime.h>

#include <atomic>

#include "tests/support/everywhere.h"
#include "tests/support/mixed.h"
#include "tests/support/thread.h"
#include "tests/support/until.h"

namespace once_test {

using coir::Deadline;
using coir::ErrorCode;
using coir::Fiber;
using coir::kManyWorkers;
using coir::spawn;
using coir::test::Everywhere;
using coir::test::is;
using coir::test::Mixed;
using coir::test::Random;
using coir::test::Thread;
using coir::test::until_parked;
using namespace std::chrono_literals;
using coir::Error;
using coir::Once;

TEST_GROUP_BASE(Once, Everywhere) {};

TEST(Once, runs_one_body_while_the_others_wait_for_it) {
  everywhere([&] {
    Once once;
    coir::Event all_in_line;
    int runs = 0;
    Fiber fibers[5];
    for (Fiber& fiber : fibers) {
      fiber = spawn([&] {
        expect(once.call([&] {
                     expect(all_in_line.wait().has_value());
                     ++runs;
                   })
                   .has_value());
        expect(runs == 1);
      });
    }
    for (Fiber& fiber : fibers) until_parked(fiber);
    all_in_line.set();
    for (Fiber& fiber : fibers) expect(fiber.join().has_value());
    expect(once.done());
    expect(once.call([&] { ++runs; }, Deadline::now()).has_value());
    expect(runs == 1);
  });
}

TEST(Once, after_a_body_that_fails_the_next_in_line_runs_its_own) {
  everywhere([&] {
    Once once;
    coir::Event all_in_line;
    std::atomic<int> runs{0}, failed{0};
    Fiber fibers[4];
    for (Fiber& fiber : fibers) {
      fiber = spawn([&] {
        const auto outcome = once.call([&]() -> std::expected<void, Error> {
          expect(all_in_line.wait().has_value());
          if (++runs < 3) return std::unexpected(Error{ErrorCode::limit});
          return {};
        });
        if (!outcome) {
          expect(outcome.error() == ErrorCode::limit);
          ++failed;
        }
      });
    }
    for (Fiber& fiber : fibers) until_parked(fiber);
    all_in_line.set();
    for (Fiber& fiber : fibers) expect(fiber.join().has_value());
    expect(runs == 3 && failed == 2 && once.done());
  });
}

TEST(Once, a_waiter_may_give_up) {
  everywhere([&] {
    Once once;
    std::atomic<bool> running{false};
    Fiber runner = spawn([&] {
      expect(is(once.call([&]() -> std::expected<void, Error> {
        running = true;
        return coir::sleep(24h);
      }),
                ErrorCode::cancelled));
    });
    while (!running) coir::yield();
    expect(is(once.call([] {}, Deadline::after(1ms)), ErrorCode::timed_out));
    Fiber waiting = spawn([&] { expect(is(once.call([] {}), ErrorCode::cancelled)); });
    coir::yield();
    expect(waiting.cancel().has_value());
    expect(waiting.join().has_value());
    expect(runner.cancel().has_value());
    expect(runner.join().has_value());
    expect(!once.done());
    expect(once.call([] {}).has_value());
  });
}

TEST(Once, stress) {
  Mixed mixed("once");
  struct Slot {
    Once once;
    int value = 0;
  };
  constexpr int kSlots = 2'000;
  static Slot slots[kSlots];
  for (Slot& slot : slots) std::construct_at(&slot);
  std::atomic<int> next{0};
  mixed.run([&](Random& random) {
    Slot& slot = slots[(next++ / 6) % kSlots];
    const auto outcome = slot.once.call(
        [&]() -> std::expected<void, Error> {
          if (random.below(3) == 0) coir::yield();
          if (random.below(4) == 0) return std::unexpected(Error{ErrorCode::busy});
          mixed.expect(++slot.value == 1);
          return {};
        },
        Deadline::after(random.micros(500)));
    if (outcome) {
      mixed.expect(slot.value == 1);
    } else {
      mixed.expect(outcome.error() == ErrorCode::busy || outcome.error() == ErrorCode::timed_out ||
                   outcome.error() == ErrorCode::cancelled);
    }
  });
  mixed.check();
}

}  // namespace once_test
