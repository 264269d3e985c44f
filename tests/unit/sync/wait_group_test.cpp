#include <coir/wait_group.h>

#include <CppUTest/TestHarness.h>
#include <coir/fiber.h>
#include <coir/runtime.h>

#include <atomic>

#include "tests/support/child.h"
#include "tests/support/everywhere.h"
#include "tests/support/mixed.h"
#include "tests/support/thread.h"

namespace wait_group_test {

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
using namespace std::chrono_literals;
using coir::WaitGroup;

TEST_GROUP_BASE(WaitGroup, Everywhere) {};

TEST(WaitGroup, of_nothing_is_over_at_once) {
  everywhere([&] {
    WaitGroup group;
    expect(group.wait(Deadline::now()).has_value());
  });
}

TEST(WaitGroup, waits_for_the_last_and_sees_what_was_done) {
  everywhere([&] {
    WaitGroup group;
    int done[6] = {};
    for (int& one : done) {
      group.add();
      spawn([&group, &one] {
        coir::yield();
        one = 1;
        group.done();
      }).detach();
    }
    expect(group.wait().has_value());
    for (const int one : done) expect(one == 1);
    expect(group.count() == 0);
  });
}

TEST(WaitGroup, may_be_destroyed_by_who_has_waited) {
  everywhere([&] {
    for (int i = 0; i < 200; ++i) {
      WaitGroup group(2);
      Fiber first = spawn([&] { group.done(); });
      Fiber second = spawn([&] { group.done(); });
      expect(group.wait().has_value());
      first.detach();
      second.detach();
    }
  });
}

TEST(WaitGroup, a_wait_ends_by_its_deadline_or_a_cancellation) {
  everywhere([&] {
    WaitGroup group(1);
    expect(is(group.wait(Deadline::after(1ms)), ErrorCode::timed_out));
    Fiber fiber = spawn([&] { expect(is(group.wait(), ErrorCode::cancelled)); });
    coir::yield();
    expect(fiber.cancel().has_value());
    expect(fiber.join().has_value());
    group.done();
    expect(group.wait().has_value());
  });
}

TEST(WaitGroup, more_done_than_added_stops_the_program) {
  const auto end = coir::test::in_child([] {
    WaitGroup group(1);
    group.done();
    group.done();
    return 0;
  });
  CHECK_TRUE(end.signal != 0 || end.status > 1);
  CHECK_TRUE(end.wrote("WaitGroup::done"));
}

TEST(WaitGroup, counts_threads_and_fibers_alike) {
  if (!kManyWorkers) return;
  everywhere([&] {
    WaitGroup group(2), begun(1);
    Thread thread([&] {
      expect(begun.wait().has_value());
      group.done();
    });
    spawn([&] {
      begun.done();
      group.done();
    }).detach();
    expect(group.wait().has_value());
    thread.join();
  });
}

TEST(WaitGroup, stress) {
  Mixed mixed("wait_group");
  WaitGroup group;
  std::atomic<int> working{0};
  mixed.run([&](Random& random) {
    if (random.below(2) == 0) {
      group.add();
      ++working;
      if (random.below(3) == 0) coir::yield();
      --working;
      group.done();
    } else if (const auto waited = group.wait(Deadline::after(random.micros(500))); !waited) {
      mixed.expect(waited.error() == ErrorCode::timed_out || waited.error() == ErrorCode::cancelled);
    }
  });
  mixed.expect(group.count() == 0 && working == 0);
  mixed.check();
}

}  // namespace wait_group_test
