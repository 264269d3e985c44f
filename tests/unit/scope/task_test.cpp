#include <CppUTest/TestHarness.h>
#include <coir/event.h>
#include <coir/fiber.h>
#include <coir/runtime.h>

#include <atomic>
#include <memory>

#include "tests/support/counted.h"
#include "tests/support/expectations.h"
#include "tests/support/until.h"

namespace task_test {

using coir::Deadline;
using coir::ErrorCode;
using coir::Fiber;
using coir::run_until_idle;
using coir::spawn;
using coir::Task;
using coir::test::Counted;
using coir::test::until;
using namespace std::chrono_literals;

namespace {

// Every test runs with one worker and with two, because the paths of a join differ.
template <class Body>
bool on_any_workers(Body body) {
  for (const unsigned workers : {1u, 2u}) {
    if (!run_until_idle({.workers = workers}, body)) return false;
  }
  return true;
}

Counted make_result(int number) {
  return Counted(number);
}

}  // namespace

TEST_GROUP_BASE(Task, coir::test::Expecting) {
  void setup() override { Counted::reset(); }  // namespace task_test

  void all_is_gone() {
    check();
    LONGS_EQUAL(0, Counted::alive());
  }
};

TEST(Task, returns_what_its_body_returned) {
  CHECK_TRUE(on_any_workers([&] {
    Task<int> task = spawn([] { return 6 * 7; });
    const auto value = task.await();
    expect(value && *value == 42);
  }));
  all_is_gone();
}

TEST(Task, a_result_that_only_moves_arrives_and_is_destroyed_once) {
  CHECK_TRUE(on_any_workers([&] {
    Counted::reset();
    {
      Task<Counted> task = spawn([] { return make_result(7); });
      auto value = task.await();
      expect(value && value->number() == 7);
      expect(Counted::ended() == 0);
    }
    expect(Counted::ended() == 1 && Counted::alive() == 0);
    Task<std::unique_ptr<int>> owner = spawn([] { return std::make_unique<int>(9); });
    auto owned = owner.await();
    expect(owned && **owned == 9);
  }));
  all_is_gone();
}

TEST(Task, awaited_after_its_end_the_result_is_still_there) {
  CHECK_TRUE(on_any_workers([&] {
    Counted::reset();
    Task<Counted> task = spawn([] { return make_result(7); });
    while (!task.done()) coir::yield();
    expect(Counted::ended() == 0);
    expect(task.await().has_value());
    expect(Counted::ended() == 1);
  }));
  all_is_gone();
}

TEST(Task, a_second_await_is_stale) {
  CHECK_TRUE(on_any_workers([&] {
    Task<int> task = spawn([] { return 1; });
    expect(task.await().has_value());
    const auto again = task.await();
    expect(!again && again.error() == ErrorCode::stale);
  }));
  all_is_gone();
}

TEST(Task, dropped_before_its_end_the_result_is_destroyed_at_the_end) {
  CHECK_TRUE(on_any_workers([&] {
    Counted::reset();
    coir::Event dropped;
    {
      Task<Counted> task = spawn([&] {
        expect(dropped.wait().has_value());
        return make_result(7);
      });
    }
    expect(Counted::ended() == 0);
    dropped.set();
    until([] { return coir::stats().fibers_alive == 1; });
    expect(Counted::ended() == 1);
  }));
  all_is_gone();
}

TEST(Task, dropped_after_its_end_the_result_is_destroyed_at_the_drop) {
  CHECK_TRUE(on_any_workers([&] {
    Counted::reset();
    {
      Task<Counted> task = spawn([] { return make_result(7); });
      while (!task.done()) coir::yield();
      expect(Counted::ended() == 0);
    }
    expect(Counted::ended() == 1);
  }));
  all_is_gone();
}

TEST(Task, dropped_while_it_ends_the_result_is_destroyed_once) {
  CHECK_TRUE(on_any_workers([&] {
    for (int i = 0; i < 2'000; ++i) {
      Counted::reset();
      {
        Task<Counted> task = spawn([] { return make_result(7); });
        coir::yield();
        for (int spin = 0; spin < i % 200; ++spin) asm volatile("");
      }
      while (coir::stats().fibers_alive > 1) coir::yield();
      expect(Counted::ended() == 1 && Counted::alive() == 0);
    }
  }));
  all_is_gone();
}

TEST(Task, a_cancelled_one_still_returns) {
  CHECK_TRUE(on_any_workers([&] {
    Counted::reset();
    {
      Task<Counted> task = spawn([] {
        const auto slept = coir::sleep_until(Deadline::never());
        return make_result(!slept && slept.error() == ErrorCode::cancelled ? 3 : 4);
      });
      coir::yield();
      expect(task.cancel().has_value());
      const auto value = task.await();
      expect(value && value->number() == 3);
    }
    expect(Counted::ended() == 1);
  }));
  all_is_gone();
}

TEST(Task, taken_as_a_fiber_it_is_joined_and_the_result_destroyed) {
  CHECK_TRUE(on_any_workers([&] {
    Counted::reset();
    Fiber fiber = spawn([] { return make_result(7); });
    expect(fiber.join().has_value());
    expect(Counted::ended() == 1);
  }));
  all_is_gone();
}

TEST(Task, assigning_over_a_handle_drops_the_fiber_that_it_had) {
  CHECK_TRUE(on_any_workers([&] {
    Counted::reset();
    {
      Task<Counted> task = spawn([] { return make_result(1); });
      task = spawn([] { return make_result(2); });
      const auto value = task.await();
      expect(value && value->number() == 2);
    }
    while (coir::stats().fibers_alive > 1) coir::yield();
    expect(Counted::ended() == 2);
  }));
  all_is_gone();
}

TEST(Task, an_await_that_times_out_may_be_repeated) {
  CHECK_TRUE(on_any_workers([&] {
    std::atomic<bool> go{false};
    Task<int> task = spawn([&go] {
      while (!go) coir::yield();
      return 5;
    });
    for (int i = 0; i < 3; ++i) {
      const auto early = task.await(Deadline::after(1ms));
      expect(!early && early.error() == ErrorCode::timed_out);
    }
    go = true;
    const auto value = task.await();
    expect(value && *value == 5);
  }));
  all_is_gone();
}

TEST(Task, a_result_with_strict_alignment_is_aligned) {
  struct alignas(16) Wide {
    double numbers[2];
  };
  CHECK_TRUE(on_any_workers([&] {
    char odd[3] = {1, 2, 3};
    Task<Wide> task = spawn([odd] { return Wide{{1.5, odd[2] + 0.5}}; });
    const auto value = task.await();
    expect(value && value->numbers[1] == 3.5);
  }));
  all_is_gone();
}

TEST(Task, of_a_body_that_may_fail_returns_its_value_or_its_error) {
  CHECK_TRUE(on_any_workers([&] {
    const auto half = [](int number) -> std::expected<int, coir::Error> {
      if (number % 2 != 0) return std::unexpected(coir::Error(ErrorCode::invalid));
      return number / 2;
    };
    Task<int> right = spawn([&] { return half(8); });
    const auto value = right.await();
    expect(value && *value == 4);
    Task<int> left = spawn([&] { return half(7); });
    const auto error = left.await();
    expect(!error && error.error() == ErrorCode::invalid);
    Task<void> nothing = spawn([]() -> std::expected<void, coir::Error> { return {}; });
    expect(nothing.await().has_value());
    Fiber fiber = spawn([&] { return half(7); });
    const auto joined = fiber.join();
    expect(!joined && joined.error() == ErrorCode::invalid);
  }));
  all_is_gone();
}

TEST(Task, its_status_tells_how_far_it_has_come) {
  using Status = coir::FiberStatus;
  CHECK_TRUE(on_any_workers([&] {
    expect(Task<int>().status() == Status::empty);
    Task<int> task = spawn([] {
      static_cast<void>(coir::sleep_until(Deadline::never()));
      return 1;
    });
    expect(task.status() == Status::running);
    expect(task.cancel("over").has_value());
    while (!task.done()) {
      const Status now = task.status();
      expect(now == Status::cancelling || now == Status::succeeded);
      coir::yield();
    }
    expect(task.status() == Status::succeeded);
    expect(task.await().has_value() && task.status() == Status::empty);
    Task<int> failed =
        spawn([]() -> std::expected<int, coir::Error> { return std::unexpected(coir::Error(ErrorCode::closed)); });
    while (!failed.done()) coir::yield();
    expect(failed.status() == Status::failed);
    expect(!failed.await());
  }));
  all_is_gone();
}

TEST(Task, a_failure_that_is_dropped_with_its_handle_is_the_roots) {
  for (const unsigned workers : {1u, 2u}) {
    const auto outcome = run_until_idle({.workers = workers}, [&] {
      Task<int> failed =
          spawn([]() -> std::expected<int, coir::Error> { return std::unexpected(coir::Error(ErrorCode::closed)); });
      while (!failed.done()) coir::yield();
      expect(!coir::cancelled());
      failed = Task<int>();
      expect(coir::cancelled());
    });
    CHECK_TRUE(!outcome && outcome.error() == ErrorCode::closed);
  }
  all_is_gone();
}

TEST(Task, a_large_result_lies_on_its_fibers_stack) {
  struct Large {
    unsigned char bytes[3'000];
  };
  CHECK_TRUE(on_any_workers([&] {
    Task<Large> task = spawn({.stack = 16 * 1024}, [] {
      Large large;
      for (unsigned char& byte : large.bytes) byte = 7;
      return large;
    });
    const auto value = task.await();
    expect(value && value->bytes[0] == 7 && value->bytes[2'999] == 7);
  }));
  all_is_gone();
}

}  // namespace task_test
