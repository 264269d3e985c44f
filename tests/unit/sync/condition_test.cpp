#include <coir/condition.h>

#include <CppUTest/TestHarness.h>
#include <coir/fiber.h>
#include <coir/runtime.h>

#include <atomic>

#include "tests/support/everywhere.h"
#include "tests/support/mixed.h"
#include "tests/support/thread.h"
#include "tests/support/until.h"

namespace condition_test {

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
using coir::Condition;
using coir::Mutex;

TEST_GROUP_BASE(Condition, Everywhere) {};

TEST(Condition, wait_gives_the_mutex_up_and_has_it_again) {
  everywhere([&] {
    Mutex mutex;
    Condition changed;
    bool ready = false;
    auto held = mutex.lock();
    expect(held.has_value());
    Fiber fiber = spawn([&] {
      auto mine = mutex.lock();  // had only while the other waits
      expect(mine.has_value());
      ready = true;
      changed.notify_one();
    });
    expect(changed.wait(*held).has_value());
    expect(ready && mutex.locked() && !mutex.try_lock());
    held->unlock();
    expect(fiber.join().has_value());
  });
}

TEST(Condition, notify_one_wakes_who_has_waited_longest) {
  everywhere([&] {
    Mutex mutex;
    Condition changed;
    int next = 0;
    Fiber fibers[4];
    for (int i = 0; i < 4; ++i) {
      fibers[i] = spawn([&, i] {
        auto held = mutex.lock();
        expect(held && changed.wait(*held).has_value());
        expect(next++ == i);
      });
      until_parked(fibers[i], "condition");
    }
    for (Fiber& fiber : fibers) {
      changed.notify_one();
      expect(fiber.join().has_value());
    }
    changed.notify_one();  // nobody waits: it is not kept
    auto held = mutex.lock();
    expect(is(changed.wait(*held, Deadline::now()), ErrorCode::timed_out));
  });
}

TEST(Condition, notify_all_wakes_everybody) {
  everywhere([&] {
    Mutex mutex;
    Condition changed;
    bool go = false;
    std::atomic<int> waiting{0};
    Fiber fibers[5];
    for (Fiber& fiber : fibers) {
      fiber = spawn([&] {
        auto held = mutex.lock();
        ++waiting;
        expect(changed.wait_until(*held, [&] { return go; }).has_value());
      });
    }
    while (waiting < 5) coir::yield();
    {
      auto held = mutex.lock();
      go = true;
    }
    changed.notify_all();
    for (Fiber& fiber : fibers) expect(fiber.join().has_value());
  });
}

// The mutex is waited for even by one who is cancelled: what it guards is touched by one only.
TEST(Condition, a_wait_that_fails_comes_back_with_the_mutex_all_the_same) {
  everywhere([&] {
    Mutex mutex;
    Condition never;
    bool left = false;
    Fiber fiber = spawn([&] {
      auto held = mutex.lock();
      expect(is(never.wait(*held), ErrorCode::cancelled));
      expect(left && mutex.locked());
    });
    until_parked(fiber, "condition");
    auto other = mutex.lock();
    expect(other.has_value());
    expect(fiber.cancel().has_value());
    until_parked(fiber, "mutex");
    left = true;
    other->unlock();
    expect(fiber.join().has_value());
    auto held = mutex.lock();
    expect(is(never.wait(*held, Deadline::after(1ms)), ErrorCode::timed_out));
    expect(mutex.locked());
  });
}

TEST(Condition, stress) {
  Mixed mixed("condition");
  Mutex mutex;
  Condition changed;
  int tokens = 0, inside = 0;
  mixed.run([&](Random& random) {
    auto held = mutex.lock();
    if (!held) return mixed.expect(held.error() == ErrorCode::cancelled);
    mixed.expect(++inside == 1);
    if (random.below(2) == 0) {
      ++tokens;
      if (random.below(2) == 0) changed.notify_one();
      if (random.below(8) == 0) changed.notify_all();
    } else {
      --inside;
      const auto waited = changed.wait_until(*held, [&] { return tokens > 0; }, Deadline::after(random.micros(400)));
      mixed.expect(++inside == 1);
      if (waited) {
        mixed.expect(tokens-- > 0);
      } else {
        mixed.expect(waited.error() == ErrorCode::timed_out || waited.error() == ErrorCode::cancelled);
      }
    }
    --inside;
  });
  mixed.check();
}

}  // namespace condition_test
