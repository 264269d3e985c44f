#include <CppUTest/TestHarness.h>
#include <coir/fiber.h>
#include <coir/runtime.h>
#include <coir/signal.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>

#include "tests/support/child.h"
#include "tests/support/everywhere.h"
#include "tests/support/scale.h"
#include "tests/support/thread.h"
#include "tests/support/until.h"

namespace signal_test {

using coir::catch_signals;
using coir::Deadline;
using coir::ErrorCode;
using coir::Fiber;
using coir::kMostSignalWaiters;
using coir::run_until_idle;
using coir::spawn;
using coir::wait_signal;
using coir::test::Everywhere;
using coir::test::in_child;
using coir::test::kEmulated;
using coir::test::until_parked;
using coir::test::until_polled;
using namespace std::chrono_literals;

namespace {

// take_all takes what earlier tests have left.
void take_all(std::initializer_list<int> signals) {
  while (wait_signal(signals, Deadline::now())) {
  }
}

}  // namespace

TEST_GROUP_BASE(Signal, Everywhere) {};

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

TEST(Signal, a_signal_that_nobody_waits_for_is_kept_once_per_number) {
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

TEST(Signal, eight_wait_for_the_same_and_each_gets_it) {
  everywhere([&] {
    Fiber waiters[kMostSignalWaiters];
    for (Fiber& waiter : waiters) {
      waiter = spawn([&] {
        for (const int wanted : {SIGUSR1, SIGUSR2}) {
          const auto number = wait_signal({SIGUSR1, SIGUSR2}, Deadline::after(20s));
          expect(number && *number == wanted);
        }
      });
    }
    for (const int number : {SIGUSR1, SIGUSR2}) {
      for (const Fiber& waiter : waiters) until_parked(waiter);
      raise(number);
      until_polled();
    }
    for (Fiber& waiter : waiters) expect(waiter.join().has_value());
    // All of it has been got: there is nothing for whoever comes later.
    const auto none = wait_signal({SIGUSR1, SIGUSR2}, Deadline::after(1ms));
    expect(!none && none.error() == ErrorCode::timed_out);
  });
}

TEST(Signal, each_gets_the_one_that_it_waits_for) {
  everywhere([&] {
    Fiber first = spawn([&] { expect(wait_signal({SIGUSR1}, Deadline::after(20s)).value_or(0) == SIGUSR1); });
    Fiber second = spawn([&] { expect(wait_signal({SIGUSR2}, Deadline::after(20s)).value_or(0) == SIGUSR2); });
    Fiber both = spawn([&] {
      const auto one = wait_signal({SIGUSR1, SIGUSR2}, Deadline::after(20s));
      const auto other = wait_signal({SIGUSR1, SIGUSR2}, Deadline::after(20s));
      expect(one.value_or(0) + other.value_or(0) == SIGUSR1 + SIGUSR2);
    });
    for (const Fiber* waiter : {&first, &second, &both}) until_parked(*waiter);
    raise(SIGUSR2);
    expect(second.join().has_value());
    until_parked(first);
    raise(SIGUSR1);
    expect(first.join().has_value() && both.join().has_value());
  });
}

TEST(Signal, one_that_waits_again_has_missed_nothing) {
  everywhere([&] {
    // This caller has been here before the other gets the signal.
    const auto early = wait_signal({SIGUSR1}, Deadline::after(1ms));
    expect(!early && early.error() == ErrorCode::timed_out);
    Fiber other = spawn([&] { expect(wait_signal({SIGUSR1}, Deadline::after(20s)).value_or(0) == SIGUSR1); });
    until_parked(other);
    raise(SIGUSR1);
    expect(other.join().has_value());
    expect(wait_signal({SIGUSR1}, Deadline::after(20s)).value_or(0) == SIGUSR1);
    // Once, and not for one that had not waited by then.
    expect(!wait_signal({SIGUSR1}, Deadline::after(1ms)));
    Fiber late = spawn([&] { expect(!wait_signal({SIGUSR1}, Deadline::after(1ms))); });
    expect(late.join().has_value());
  });
}

TEST(Signal, a_ninth_waiter_is_one_too_many) {
  everywhere([&] {
    Fiber waiters[kMostSignalWaiters];
    for (Fiber& waiter : waiters) {
      waiter = spawn([&] { expect(!wait_signal({SIGUSR1})); });
      until_parked(waiter);
    }
    const auto ninth = wait_signal({SIGUSR2}, Deadline::after(20s));
    expect(!ninth && ninth.error() == ErrorCode::limit);
    expect(waiters[3].cancel().has_value() && waiters[3].join().has_value());
    raise(SIGUSR2);
    expect(wait_signal({SIGUSR2}, Deadline::after(20s)).value_or(0) == SIGUSR2);
    for (Fiber& waiter : waiters) static_cast<void>(waiter.cancel());
    for (Fiber& waiter : waiters) static_cast<void>(waiter.join());
  });
}

TEST(Signal, a_thread_and_a_fiber_wait_beside_each_other) {
  everywhere([&] {
    std::atomic<int> got{0};
    coir::test::Thread thread([&] { got = wait_signal({SIGUSR1}, Deadline::after(20s)).value_or(-1); });
    thread.until_blocked();
    Fiber waiter = spawn([&] { expect(wait_signal({SIGUSR1}, Deadline::after(20s)).value_or(0) == SIGUSR1); });
    until_parked(waiter);
    kill(getpid(), SIGUSR1);
    expect(waiter.join().has_value());
    coir::test::until([&] { return got != 0; });
    expect(got == SIGUSR1);
  });
}

// Bursts of signals while waiters come and go: each that stays has the last of them.
TEST(Signal, the_last_of_many_is_always_heard) {
  everywhere([&] {
    std::atomic<int> sent{0};
    Fiber waiters[4];
    for (Fiber& waiter : waiters) {
      waiter = spawn([&] {
        for (int heard = 0; heard < 200;) {
          const auto number = wait_signal({SIGUSR1}, Deadline::after(20s));
          expect(number.has_value());
          if (!number) return;
          heard = sent;
        }
      });
    }
    // One that first asked behind the last would not hear of it.
    for (Fiber& waiter : waiters) until_parked(waiter);
    for (int i = 0; i < 200; ++i) {
      ++sent;
      kill(getpid(), SIGUSR1);
      if (i % 3 == 0) coir::yield();
    }
    for (Fiber& waiter : waiters) {
      // QEMU's user mode may keep a signal back while the thread that the host has chosen for it sleeps.
      auto ended = waiter.join(kEmulated ? Deadline::after(1s) : Deadline::never());
      while (!ended && ended.error() == ErrorCode::timed_out) {
        kill(getpid(), SIGUSR1);
        ended = waiter.join(Deadline::after(1s));
      }
      expect(ended.has_value());
    }
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

TEST(Signal, one_caller_waits_without_a_descriptor_left) {
  const auto end = in_child([] {
    return coir::run({.workers = 1}, [] {
      if (!catch_signals({SIGUSR1})) return 1;
      const rlimit none{};
      setrlimit(RLIMIT_NOFILE, &none);
      const auto before = wait_signal({SIGUSR1}, Deadline::after(1ms));
      if (before || before.error() != ErrorCode::timed_out) return 2;
      raise(SIGUSR1);
      const auto number = wait_signal({SIGUSR1});
      return number && *number == SIGUSR1 ? 0 : 3;
    });
  });
  LONGS_EQUAL(0, end.status);
}

TEST(Signal, one_that_has_come_is_taken_without_a_descriptor_left) {
  const auto end = in_child([] {
    if (!catch_signals({SIGUSR1})) return 1;
    const rlimit none{};
    setrlimit(RLIMIT_NOFILE, &none);
    const auto before = wait_signal({SIGUSR1}, Deadline::now());
    if (before || before.error() != ErrorCode::timed_out) return 2;
    raise(SIGUSR1);
    const auto number = wait_signal({SIGUSR1}, Deadline::now());
    if (!number || *number != SIGUSR1) return 3;
    const auto after = wait_signal({SIGUSR1}, Deadline::now());
    return !after && after.error() == ErrorCode::timed_out ? 0 : 4;
  });
  LONGS_EQUAL(0, end.status);
}

// A poller of signals_fd() is not robbed by others that ask for other signals.
TEST(Signal, the_descriptor_stays_readable_for_what_others_ask_for) {
  take_all({SIGUSR1, SIGUSR2});
  pollfd entry{.fd = coir::signals_fd(), .events = POLLIN, .revents = 0};
  raise(SIGUSR1);
  for (int times = 0; times < 3; ++times) {
    const auto other = wait_signal({SIGUSR2}, Deadline::now());
    CHECK_TRUE(!other && other.error() == ErrorCode::timed_out);
    LONGS_EQUAL(1, poll(&entry, 1, 0));
  }
  CHECK_TRUE(wait_signal({SIGUSR1}, Deadline::now()) == SIGUSR1);
  LONGS_EQUAL(0, poll(&entry, 1, 0));
  // One that nobody has ever asked for keeps no poller awake.
  CHECK_TRUE(catch_signals({SIGWINCH}).has_value());
  raise(SIGWINCH);
  LONGS_EQUAL(1, poll(&entry, 1, 0));
  static_cast<void>(wait_signal({SIGUSR1}, Deadline::now()));
  LONGS_EQUAL(0, poll(&entry, 1, 0));
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

}  // namespace signal_test
