#include <coir/semaphore.h>

#include <CppUTest/TestHarness.h>
#include <coir/fiber.h>
#include <coir/runtime.h>

#include <atomic>

#include "tests/support/everywhere.h"
#include "tests/support/mixed.h"
#include "tests/support/thread.h"
#include "tests/support/until.h"

namespace semaphore_test {

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
using coir::test::Together;
using coir::test::until_parked;
using namespace std::chrono_literals;
using coir::Semaphore;

TEST_GROUP_BASE(Semaphore, Everywhere) {};

TEST(Semaphore, gives_what_it_has_and_no_more) {
  everywhere([&] {
    Semaphore permits(3);
    expect(permits.acquire(2).has_value());
    expect(!permits.try_acquire(2));
    expect(permits.try_acquire());
    expect(is(permits.acquire(Deadline::now()), ErrorCode::timed_out));
    permits.release(3);
    expect(permits.available() == 3);
  });
}

TEST(Semaphore, limits_how_many_are_inside) {
  everywhere([&] {
    Semaphore permits(2);
    Together together(2);
    Fiber fibers[8];
    for (Fiber& fiber : fibers) {
      fiber = spawn([&] {
        expect(permits.acquire().has_value());
        together.visit();
        permits.release();
      });
    }
    for (Fiber& fiber : fibers) expect(fiber.join().has_value());
    expect(together.most() == 2);
    expect(permits.available() == 2);
  });
}

TEST(Semaphore, a_small_want_does_not_pass_a_large_one) {
  everywhere([&] {
    Semaphore permits(1);
    int order = 0;
    Fiber large = spawn([&] {
      expect(permits.acquire(2).has_value());
      expect(order++ == 0);
      permits.release(2);
    });
    until_parked(large, "semaphore");
    expect(!permits.try_acquire());
    Fiber small = spawn([&] {
      expect(permits.acquire(1).has_value());
      expect(order++ == 1);
      permits.release(1);
    });
    until_parked(small, "semaphore");
    permits.release();
    expect(large.join().has_value());
    expect(small.join().has_value());
    expect(permits.available() == 2);
  });
}

TEST(Semaphore, those_behind_one_that_gives_up_are_served) {
  everywhere([&] {
    Semaphore permits(1);
    Fiber large = spawn([&] { expect(is(permits.acquire(2), ErrorCode::cancelled)); });
    until_parked(large, "semaphore");
    Fiber small = spawn([&] { expect(permits.acquire(1).has_value()); });
    until_parked(small, "semaphore");
    expect(large.cancel().has_value());
    expect(large.join().has_value());
    expect(small.join().has_value());
    expect(permits.available() == 0);
  });
}

TEST(Semaphore, threads_and_fibers_hand_permits_to_each_other) {
  if (!kManyWorkers) return;
  everywhere([&] {
    Semaphore to_thread(0), to_fiber(0);
    Thread thread([&] {
      for (int i = 0; i < 100; ++i) {
        expect(to_thread.acquire().has_value());
        to_fiber.release();
      }
    });
    for (int i = 0; i < 100; ++i) {
      to_thread.release();
      expect(to_fiber.acquire().has_value());
    }
  });
}

TEST(Semaphore, stress) {
  Mixed mixed("semaphore");
  constexpr int kPermits = 3;
  Semaphore permits(kPermits);
  std::atomic<int> inside{0};
  mixed.run([&](Random& random) {
    const int wanted = 1 + static_cast<int>(random.below(kPermits));
    const Deadline deadline = random.below(3) == 0 ? Deadline::after(random.micros(200)) : Deadline::never();
    if (const auto had = permits.acquire(static_cast<std::uint64_t>(wanted), deadline)) {
      mixed.expect((inside += wanted) <= kPermits);
      if (random.below(3) == 0) coir::yield();
      inside -= wanted;
      permits.release(static_cast<std::uint64_t>(wanted));
    } else {
      mixed.expect(had.error() == ErrorCode::timed_out || had.error() == ErrorCode::cancelled);
    }
  });
  mixed.expect(permits.available() == kPermits);
  mixed.check();
}

}  // namespace semaphore_test
