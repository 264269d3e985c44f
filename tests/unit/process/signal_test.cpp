#include <CppUTest/TestHarness.h>
#include <coir/fiber.h>
#include <coir/runtime.h>
#include <coir/signal.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>

#include "tests/support/child.h"
#include "tests/support/everywhere.h"
#include "tests/support/until.h"

using coir::catch_signals;
using coir::Deadline;
using coir::ErrorCode;
using coir::Fiber;
using coir::run_until_idle;
using coir::spawn;
using coir::wait_signal;
using coir::test::Everywhere;
using coir::test::in_child;
using coir::test::until_parked;
using coir::test::until_polled;
using namespace std::chrono_literals;

TEST_GROUP_BASE(Signal, Everywhere){};

TEST(Signal, wakes_the_fiber_that_waits_for_it) {
  everywhere([&] {
    std::atomic<bool> sent{false};
    Fiber waiter = spawn([&] {
      const auto number = wait_signal({SIGUSR1, SIGUSR2}, Deadline::after(20s));
      expect(number && *number == SIGUSR2 && sent);
    });
    until_parked(waiter);
    sent = true;
    kill(getpid(), SIGUSR2);
    static_cast<void>(waiter.join());
  });
}

TEST(Signal, what_comes_while_nobody_waits_is_kept_once_per_number) {
  everywhere([&] {
    expect(catch_signals({SIGUSR1, SIGUSR2}).has_value());
    raise(SIGUSR1);
    raise(SIGUSR1);
    raise(SIGUSR2);
    const auto one = wait_signal({SIGUSR1}, Deadline::after(20s));
    expect(one && *one == SIGUSR1);
    const auto two = wait_signal({SIGUSR1, SIGUSR2}, Deadline::after(20s));
    expect(two && *two == SIGUSR2);
    const auto none = wait_signal({SIGUSR1, SIGUSR2}, Deadline::after(1ms));
    expect(!none && none.error() == ErrorCode::timed_out);
  });
}

TEST(Signal, another_one_does_not_end_the_wait_and_is_not_lost) {
  everywhere([&] {
    expect(catch_signals({SIGUSR1, SIGUSR2}).has_value());
    Fiber waiter = spawn([&] {
      const auto number = wait_signal({SIGUSR1}, Deadline::after(20s));
      expect(number && *number == SIGUSR1);
    });
    until_parked(waiter);
    raise(SIGUSR2);
    until_polled();
    until_parked(waiter);
    expect(!waiter.done());
    raise(SIGUSR1);
    static_cast<void>(waiter.join());
    expect(wait_signal({SIGUSR2}, Deadline::after(20s)).has_value());
  });
}

TEST(Signal, a_second_waiter_is_busy) {
  everywhere([&] {
    Fiber first = spawn([&] { expect(!wait_signal({SIGUSR1})); });
    until_parked(first);
    const auto second = wait_signal({SIGUSR1}, Deadline::after(20s));
    expect(!second && second.error() == ErrorCode::busy);
    static_cast<void>(first.cancel());
    static_cast<void>(first.join());
  });
}

TEST(Signal, a_cancelled_waiter_gives_up) {
  everywhere([&] {
    Fiber waiter = spawn([&] {
      const auto number = wait_signal({SIGUSR1});
      expect(!number && number.error() == ErrorCode::cancelled);
    });
    until_parked(waiter);
    static_cast<void>(waiter.cancel());
    static_cast<void>(waiter.join());
  });
}

TEST(Signal, numbers_that_are_none_or_cannot_be_caught_are_invalid) {
  for (const int number : {0, -1, 64, 1'000, SIGKILL}) {
    const auto caught = catch_signals({number});
    CHECK_TRUE(!caught && caught.error() == ErrorCode::invalid);
  }
}

TEST(Signal, a_plain_thread_waits_by_poll) {
  CHECK_TRUE(catch_signals({SIGUSR1}).has_value());
  raise(SIGUSR1);
  const auto number = wait_signal({SIGUSR1}, Deadline::after(20s));
  CHECK_TRUE(number && *number == SIGUSR1);
  const auto none = wait_signal({SIGUSR1}, Deadline::after(1ms));
  CHECK_TRUE(!none && none.error() == ErrorCode::timed_out);
}

// A daemon's whole life: SIGTERM starts the graceful end.
TEST(Signal, one_from_another_process_ends_a_program_in_good_order) {
  const auto end = in_child([] {
    return coir::run({.workers = 2}, [] {
      const auto number = wait_signal({SIGTERM}, Deadline::after(1ms));
      if (number) return 1;
      const pid_t me = getpid();
      if (const pid_t other = fork(); other == 0) {
        kill(me, SIGTERM);
        _exit(0);
      }
      return wait_signal({SIGTERM}, Deadline::after(20s)) ? 7 : 2;
    });
  });
  LONGS_EQUAL(7, end.status);
}
