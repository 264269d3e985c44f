#include <coir/mutex.h>

#include <CppUTest/TestHarness.h>
#include <coir/fiber.h>
#include <coir/runtime.h>
#include <stdio.h>

#include <optional>

#include "tests/support/child.h"
#include "tests/support/everywhere.h"
#include "tests/support/mixed.h"
#include "tests/support/thread.h"
#include "tests/support/until.h"

namespace mutex_test {

using coir::Deadline;
using coir::Error;
using coir::ErrorCode;
using coir::Fiber;
using coir::kManyWorkers;
using coir::Mutex;
using coir::spawn;
using coir::test::ChildEnd;
using coir::test::Everywhere;
using coir::test::in_child;
using coir::test::is;
using coir::test::Mixed;
using coir::test::Random;
using coir::test::Thread;
using coir::test::until_parked;
using namespace std::chrono_literals;

TEST_GROUP_BASE(Mutex, Everywhere) {};

TEST(Mutex, one_that_is_free_is_had_at_once_and_by_one_only) {
  everywhere([&] {
    Mutex mutex;
    expect(!mutex.locked());
    auto held = mutex.lock(Deadline::now());
    expect(held.has_value());
    expect(mutex.locked());
    expect(!mutex.try_lock());
    held->unlock();
    expect(mutex.try_lock().has_value());
    expect(!mutex.locked());
  });
}

TEST(Mutex, those_who_wait_get_it_in_the_order_in_which_they_came) {
  everywhere([&] {
    Mutex mutex;
    int next = 0;
    auto held = mutex.lock();
    expect(held.has_value());
    Fiber fibers[5];
    for (int i = 0; i < 5; ++i) {
      fibers[i] = spawn([&, i] {
        const auto mine = mutex.lock();
        expect(mine.has_value());
        expect(next++ == i);
        coir::yield();
      });
      until_parked(fibers[i], "mutex");
    }
    held->unlock();
    for (Fiber& fiber : fibers) expect(fiber.join().has_value());
    expect(next == 5);
  });
}

// Without a bound, one worker would never come to who waits: the fiber that locks over and over parks nowhere.
TEST(Mutex, a_bounded_number_of_others_passes_a_waiter) {
  everywhere([&] {
    Mutex mutex;
    bool served = false;
    unsigned passed = 0;
    auto held = mutex.lock();
    expect(held.has_value());
    Fiber waiter = spawn([&] {
      const auto mine = mutex.lock();
      expect(mine.has_value());
      served = true;
    });
    until_parked(waiter, "mutex");
    held->unlock();
    for (;; ++passed) {
      const auto again = mutex.lock();
      expect(again.has_value());
      if (served) break;
    }
    expect(passed <= Mutex::kMostPassed);
    expect(waiter.join().has_value());
  });
}

TEST(Mutex, may_be_held_across_a_park) {
  everywhere([&] {
    Mutex mutex;
    int inside = 0;
    Fiber fibers[4];
    for (Fiber& fiber : fibers) {
      fiber = spawn([&] {
        auto held = mutex.lock();
        expect(held.has_value());
        expect(++inside == 1);
        static_cast<void>(coir::sleep(1ms));
        expect(--inside == 0);
      });
    }
    for (Fiber& fiber : fibers) expect(fiber.join().has_value());
    expect(!mutex.locked());
  });
}

TEST(Mutex, a_wait_that_times_out_or_is_cancelled_leaves_the_line) {
  everywhere([&] {
    Mutex mutex;
    auto held = mutex.lock();
    expect(held.has_value());
    Fiber cancelled = spawn([&] { expect(is(mutex.lock(), ErrorCode::cancelled)); });
    Fiber late = spawn([&] { expect(is(mutex.lock(Deadline::after(2ms)), ErrorCode::timed_out)); });
    Fiber last = spawn([&] { expect(mutex.lock().has_value()); });
    expect(late.join().has_value());
    expect(cancelled.cancel().has_value());
    expect(cancelled.join().has_value());
    held->unlock();
    expect(last.join().has_value());
    expect(!mutex.locked());
  });
}

TEST(Mutex, a_cancelled_fiber_still_gets_one_that_is_free) {
  everywhere([&] {
    Mutex mutex;
    expect(coir::spawn([&] {
             static_cast<void>(coir::current().cancel());
             expect(mutex.lock().has_value());
           })
               .join()
               .has_value());
  });
}

TEST(Mutex, to_lock_it_twice_is_a_deadlock_and_said_so) {
  everywhere([&] {
    Mutex mutex;
    auto held = mutex.lock();
    expect(held.has_value());
    expect(is(mutex.lock(), ErrorCode::deadlock));
    held->unlock();
    expect(!mutex.locked());
  });
}

TEST(Mutex, a_fiber_that_ends_with_one_locked_is_named) {
  const ChildEnd end = in_child([] {
    return coir::run({.workers = 1}, [] {
      static Mutex mutex;
      static constinit std::optional<Mutex::Guard> kept;
      static_cast<void>(spawn({.name = "forgetful"}, [] { kept = mutex.lock().value(); }).join());
      const auto locked = mutex.lock(Deadline::after(1ms));
      return !locked && locked.error() == ErrorCode::timed_out ? 0 : 1;
    });
  });
  LONGS_EQUAL(0, end.status);
  CHECK_TRUE(end.wrote("\"forgetful\", spawned at "));
  CHECK_TRUE(end.wrote("ended with 1 mutex still locked"));
  LONGS_EQUAL(1, end.lines());
}

TEST(Mutex, to_unlock_what_another_holds_stops_the_program) {
  const ChildEnd end = in_child([] {
    return coir::run({.workers = 1}, [] {
      Mutex mutex;
      auto held = mutex.lock();
      static_cast<void>(spawn([&] { held->unlock(); }).join());
    });
  });
  CHECK_TRUE(end.signal != 0 || end.status > 1);
  CHECK_TRUE(end.wrote("does not hold it"));
}

TEST(Mutex, a_waiter_is_listed_with_the_holder) {
  if (coir::test::cannot_see_threads()) return;
  const ChildEnd end = in_child([] {
    Mutex mutex;  // outlives the fiber that waits for it
    return coir::run({.workers = 2}, [&] {
      const auto held = mutex.lock();
      static_cast<void>(spawn({.name = "waiting"}, [&] { static_cast<void>(mutex.lock()); }).join());
    });
  });
  LONGS_EQUAL(1, end.status);
  CHECK_TRUE(end.wrote("\"waiting\" parked waits for a mutex that fiber "));
}

TEST(Mutex, threads_without_a_runtime_exclude_each_other) {
  if (!kManyWorkers) return;
  Mutex mutex;
  int count = 0;
  const auto work = [&] {
    for (int i = 0; i < 2'000; ++i) {
      if (const auto held = mutex.lock(); held) ++count;
    }
  };
  {
    Thread first(work), second(work);
  }
  LONGS_EQUAL(4'000, count);
}

// Fibers and threads lock it, some with a deadline, some to be cancelled; nobody is inside with another.
TEST(Mutex, stress) {
  Mixed mixed("mutex");
  Mutex mutex;
  int inside = 0, entered = 0;
  mixed.run([&](Random& random) {
    const Deadline deadline = random.below(4) == 0 ? Deadline::after(random.micros(200)) : Deadline::never();
    if (auto held = mutex.lock(deadline)) {
      mixed.expect(++inside == 1);
      ++entered;
      if (random.below(4) == 0) coir::yield();
      mixed.expect(--inside == 0);
    } else {
      mixed.expect(held.error() == ErrorCode::timed_out || held.error() == ErrorCode::cancelled);
    }
  });
  mixed.expect(!mutex.locked());
  mixed.expect(entered > 0);
  mixed.check();
}

}  // namespace mutex_test
