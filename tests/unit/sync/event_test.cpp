#include <coir/event.h>

#include <CppUTest/TestHarness.h>
#include <coir/fiber.h>
#include <coir/runtime.h>
#include <coir/wait_group.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>

#include "tests/support/child.h"
#include "tests/support/everywhere.h"
#include "tests/support/mixed.h"
#include "tests/support/thread.h"
#include "tests/support/until.h"

namespace event_test {

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
using coir::test::until_blocked;
using coir::test::until_parked;
using namespace std::chrono_literals;
using coir::Event;

TEST_GROUP_BASE(Event, Everywhere) {};

TEST(Event, releases_everybody_who_waits_and_stays_open) {
  everywhere([&] {
    Event ready;
    std::atomic<int> released{0};
    Fiber fibers[4];
    for (Fiber& fiber : fibers) {
      fiber = spawn([&] {
        expect(ready.wait().has_value());
        ++released;
      });
    }
    for (Fiber& fiber : fibers) until_parked(fiber, "event");
    expect(released == 0 && !ready.is_set());
    ready.set();
    for (Fiber& fiber : fibers) expect(fiber.join().has_value());
    expect(released == 4);
    expect(ready.wait(Deadline::now()).has_value());
    ready.set();
    ready.reset();
    expect(is(ready.wait(Deadline::now()), ErrorCode::timed_out));
  });
}

TEST(Event, a_wait_ends_by_its_deadline_or_a_cancellation) {
  everywhere([&] {
    Event never;
    const Deadline deadline = Deadline::after(3ms);
    expect(is(never.wait(deadline), ErrorCode::timed_out));
    expect(deadline.passed());
    Fiber fiber = spawn([&] { expect(is(never.wait(), ErrorCode::cancelled)); });
    until_parked(fiber, "event");
    expect(fiber.cancel().has_value());
    expect(fiber.join().has_value());
    expect(never.wait(Deadline::now()).error() == ErrorCode::timed_out);
  });
}

TEST(Event, a_write_before_set_is_seen_after_wait) {
  everywhere([&] {
    for (int i = 0; i < 200; ++i) {
      Event ready;
      int value = 0;
      Fiber fiber = spawn([&] {
        value = i;
        ready.set();
      });
      expect(ready.wait().has_value());  // and may now be destroyed
      expect(value == i);
      expect(fiber.join().has_value());
    }
  });
}

TEST(Event, a_thread_releases_fibers_and_a_fiber_threads) {
  if (!kManyWorkers) return;
  everywhere([&] {
    Event to_fiber, to_thread;
    std::atomic<bool> heard{false};
    Thread thread([&] {
      to_fiber.set();
      expect(to_thread.wait().has_value());
      heard = true;
      expect(is(Event().wait(Deadline::after(1ms)), ErrorCode::timed_out));
    });
    expect(to_fiber.wait().has_value());
    expect(!heard);
    to_thread.set();
    thread.join();
    expect(heard);
  });
}

TEST(Event, a_fiber_that_waits_for_a_thread_is_no_deadlock) {
  everywhere([&] {
    Event ready;
    Thread thread([&, waiting = coir::current()] {
      // Everything else is parked by then, and the run's own worker, which is the test's thread, has looked for more.
      until_parked(waiting, "event");
      until_blocked(getpid());
      ready.set();
    });
    expect(ready.wait().has_value());
  });
}

// Each setter also resets. No waiter misses an opening that came after its call, or waits at an open gate.
TEST(Event, stress) {
  Mixed mixed("event");
  Event gates[3];
  mixed.run([&](Random& random) {
    Event& gate = gates[random.below(3)];
    switch (random.below(4)) {
      case 0:
        return gate.set();
      case 1:
        return gate.reset();
      default:
        if (const auto waited = gate.wait(Deadline::after(random.micros(600))); !waited)
          mixed.expect(waited.error() == ErrorCode::timed_out || waited.error() == ErrorCode::cancelled);
    }
  });
  mixed.check();
}

TEST(Event, one_that_is_waited_for_is_not_destroyed) {
  const auto event = coir::test::in_child([] {
    return coir::run({.workers = 1}, [] {
      coir::Fiber waiter;
      {
        Event short_lived;
        waiter = spawn({.name = "waiter"}, [&] { static_cast<void>(short_lived.wait()); });
        coir::test::until_parked(waiter);
      }
    });
  });
  LONGS_EQUAL(SIGABRT, event.signal);
  CHECK_TRUE(event.wrote("coir: an event was destroyed while somebody waited on it (fiber "));
  const auto group = coir::test::in_child([] {
    return coir::run({.workers = 1}, [] {
      coir::Fiber waiter;
      {
        coir::WaitGroup short_lived(1);
        waiter = spawn({.name = "waiter"}, [&] { static_cast<void>(short_lived.wait()); });
        coir::test::until_parked(waiter);
      }
    });
  });
  LONGS_EQUAL(SIGABRT, group.signal);
  CHECK_TRUE(group.wrote("coir: a wait group was destroyed while somebody waited on it (fiber "));
}

}  // namespace event_test
