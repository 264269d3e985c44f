#include <coir/config.h>
#include <coir/isolate.h>

#include <CppUTest/TestHarness.h>
#include <coir/blocking.h>
#include <coir/channel.h>
#include <coir/fiber.h>
#include <coir/ledger.h>
#include <coir/nursery.h>
#include <coir/runtime.h>
#include <coir/wait.h>
#include <pthread.h>
#include <unistd.h>

#include "tests/support/child.h"
#include "tests/support/everywhere.h"
#include "tests/support/pipe.h"
#include "tests/support/scale.h"

namespace isolated_run_test {

using namespace std::chrono_literals;
using coir::Deadline;
using coir::Error;
using coir::ErrorCode;
using coir::Isolate;
using coir::IsolatePort;

// An isolate has a scheduler of its own, except in single-worker builds.
#if COIR_SINGLE_WORKER
TEST_GROUP_BASE(IsolatedRun, coir::test::Everywhere) {};

TEST(IsolatedRun, without_a_scheduler_spawn_is_refused_inside) {
  everywhere([&] {
    auto isolate = Isolate::spawn([](IsolatePort&) {
      coir::Fiber fiber = coir::spawn([] {});
      return fiber.join().error() == ErrorCode::unsupported;
    });
    expect(isolate && isolate->await<bool>().value_or(false));
  });
}
#else

namespace {

// pipeline sums 1 to `count` through two fibers and a channel of the caller's run.
int pipeline(int count) {
  coir::Channel<int> numbers({.capacity = 4});
  coir::Nursery nursery;
  nursery.start([&] {
    for (int i = 1; i <= count; ++i) {
      if (!numbers.send(i)) return;
      coir::yield();
    }
    numbers.close();
  });
  int sum = 0;
  while (auto number = numbers.receive()) sum += *number;
  return nursery.join() ? sum : -1;
}

}  // namespace

TEST_GROUP_BASE(IsolatedRun, coir::test::Everywhere) {};

TEST(IsolatedRun, fibers_channels_and_timers_work_inside) {
  everywhere([&] {
    auto isolate = Isolate::spawn([](IsolatePort&) {
      const Deadline earliest = Deadline::after(3ms);
      const bool slept = coir::sleep(3ms).has_value() && earliest.passed();
      return slept ? pipeline(100) : 0;
    });
    expect(isolate.has_value());
    expect(pipeline(100) == 5050);
    expect(isolate->await<int>().value_or(0) == 5050);
  });
}

TEST(IsolatedRun, several_run_at_once_beside_the_process_and_each_other) {
  everywhere([&] {
    constexpr int kIsolates = 4, kRounds = coir::test::scaled({300, 100, 30, 50});
    std::expected<Isolate, Error> isolates[kIsolates] = {std::unexpected(Error{}), std::unexpected(Error{}),
                                                         std::unexpected(Error{}), std::unexpected(Error{})};
    for (auto& isolate : isolates) {
      isolate = Isolate::spawn([](IsolatePort&) {
        int right = 0;
        for (int i = 0; i < kRounds; ++i) right += pipeline(20) == 210;
        return right;
      });
      expect(isolate.has_value());
    }
    for (int i = 0; i < kRounds; ++i) expect(pipeline(20) == 210);
    for (auto& isolate : isolates) expect(isolate && isolate->await<int>().value_or(0) == kRounds);
  });
}

TEST(IsolatedRun, a_descriptor_wakes_a_fiber_inside) {
  everywhere([&] {
    coir::test::Pipe pipe;
    auto isolate = Isolate::spawn([fd = pipe.reader](IsolatePort& port) {
      static_cast<void>(port.send(true));
      return coir::wait(fd, coir::Direction::readable).has_value();
    });
    expect(isolate && isolate->receive<bool>());
    expect(write(pipe.writer, "x", 1) == 1);
    expect(isolate->await<bool>().value_or(false));
  });
}

TEST(IsolatedRun, a_blocking_call_inside_leaves_its_other_fibers_running) {
  everywhere([&] {
    auto isolate = Isolate::spawn([](IsolatePort&) {
      const pthread_t self = pthread_self();
      int ends[2];
      if (pipe(ends) != 0) return false;
      static_cast<void>(coir::spawn([out = ends[1]] { return write(out, "x", 1) == 1; }));
      auto there = coir::blocking([self, in = ends[0]] {
        char byte;
        return read(in, &byte, 1) == 1 && !pthread_equal(self, pthread_self());
      });
      close(ends[0]);
      close(ends[1]);
      return there.value_or(false);
    });
    expect(isolate && isolate->await<bool>().value_or(false));
  });
}

TEST(IsolatedRun, a_call_that_outlives_its_run_is_left_to_its_thread) {
  everywhere([&] {
    int ends[2];
    expect(pipe(ends) == 0);
    auto isolate = Isolate::spawn([in = ends[0]](IsolatePort&) {
      auto late = coir::blocking(
          [in] {
            char byte;
            const auto got = read(in, &byte, 1);
            close(in);
            return got;
          },
          Deadline::after(2ms));
      return late.error() == ErrorCode::timed_out;
    });
    expect(isolate && isolate->await<bool>().value_or(false));
    close(ends[1]);
  });
}

TEST(IsolatedRun, cancel_reaches_every_fiber_in_any_wait) {
  everywhere([&] {
    auto isolate = Isolate::spawn([](IsolatePort& port) -> std::expected<int, Error> {
      coir::Task<bool> sleeper = coir::spawn([] { return coir::sleep(1h).error() == ErrorCode::cancelled; });
      coir::Task<bool> receiver = coir::spawn([&] { return port.receive<int>().error() == ErrorCode::cancelled; });
      static_cast<void>(port.send(1));
      const bool slept = coir::sleep(1h).error() == ErrorCode::cancelled;
      int ended = slept;
      coir::Shield shield(Deadline::never());
      ended += sleeper.await().value_or(false);
      ended += receiver.await().value_or(false);
      return ended;
    });
    expect(isolate && isolate->receive<int>());
    expect(isolate->cancel().has_value());
    expect(isolate->await<int>().value_or(0) == 3);
  });
}

TEST(IsolatedRun, a_dropped_isolate_is_cancelled_wherever_it_waits) {
  everywhere([&] {
    auto isolate = Isolate::spawn([](IsolatePort& port) {
      static_cast<void>(port.send(1));
      static_cast<void>(coir::sleep(1h));
    });
    expect(isolate && isolate->receive<int>());
  });
}

TEST(IsolatedRun, the_first_failure_nobody_handled_is_its_result) {
  everywhere([&] {
    auto isolate = Isolate::spawn([](IsolatePort&) {
      static_cast<void>(
          coir::spawn([]() -> std::expected<void, Error> { return std::unexpected(Error{ErrorCode::limit}); }));
      static_cast<void>(coir::sleep(1h));
    });
    expect(isolate && isolate->await().error() == ErrorCode::limit);
  });
}

TEST(IsolatedRun, an_isolate_may_own_an_isolate) {
  everywhere([&] {
    auto outer = Isolate::spawn([](IsolatePort& port) {
      auto inner = Isolate::spawn([](IsolatePort& up) {
        auto number = up.receive<int>();
        return number ? *number * 2 : 0;
      });
      auto number = port.receive<int>();
      if (!inner || !number || !inner->send(*number + 1)) return 0;
      return inner->await<int>().value_or(0);
    });
    expect(outer && outer->send(20).has_value() && outer->await<int>().value_or(0) == 42);
  });
}

TEST(IsolatedRun, its_deadlock_is_reported_and_ends_it) {
  const coir::test::ChildEnd end = coir::test::in_child([] {
    auto isolate = Isolate::spawn([](IsolatePort&) {
      coir::Channel<int> nobody_sends;
      static_cast<void>(nobody_sends.receive());
    });
    return isolate && isolate->await().error() == ErrorCode::deadlock ? 0 : 1;
  });
  LONGS_EQUAL(0, end.status);
  CHECK_TRUE(end.wrote("coir: deadlock"));
}

TEST(IsolatedRun, its_stacks_are_refunded) {
  const std::size_t before = coir::account::stacks.used();
  {
    auto isolate = Isolate::spawn([](IsolatePort&) { return pipeline(10); });
    CHECK_TRUE(isolate && isolate->await<int>().value_or(0) == 55);
  }
  LONGS_EQUAL(before, coir::account::stacks.used());
}

#endif

}  // namespace isolated_run_test
