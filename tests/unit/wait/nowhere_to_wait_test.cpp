#include <CppUTest/TestHarness.h>
#include <coir/broadcast.h>
#include <coir/cancel_scope.h>
#include <coir/fiber.h>
#include <coir/nursery.h>
#include <coir/once.h>
#include <coir/resting_wait.h>
#include <coir/runtime.h>
#include <coir/wait.h>
#include <coir/worker_stack.h>

#include "tests/support/endless_waits.h"
#include "tests/support/everywhere.h"
#include "tests/support/mixed.h"
#include "tests/support/pipe.h"

namespace nowhere_to_wait_test {

using coir::CancelScope;
using coir::Deadline;
using coir::ErrorCode;
using coir::kManyWorkers;
using coir::RestingWait;
using coir::test::EndlessWaits;
using coir::test::Everywhere;
using coir::test::is;
using coir::test::Pipe;
using namespace std::chrono_literals;

namespace {

// Calls that need not wait succeed; calls that would have to wait fail.
bool takes_what_is_there() {
  coir::Mutex mutex;
  coir::Semaphore semaphore{1};
  coir::Event event;
  coir::WaitGroup group;
  coir::RwLock lock;
  coir::Once once;
  coir::Channel<int> channel({.capacity = 1});
  coir::Broadcast<int> news;
  coir::Subscription<int> feed(news);
  int value = 0;
  event.set();
  const auto held = mutex.lock();
  const auto reading = lock.read();
  bool right = held && reading && semaphore.acquire() && event.wait() && group.wait() && once.call([] {}) &&
               channel.send(1) && news.publish(2) && feed.receive() == 2;
  const auto won = coir::select({coir::Case::receive(channel, value)});
  right = right && won && value == 1;
  right = right && is(semaphore.acquire(Deadline::now()), ErrorCode::timed_out);
  right = right && is(channel.receive(Deadline::now()), ErrorCode::timed_out);
  right = right && is(coir::select({coir::Case::receive(feed, value)}, Deadline::now()), ErrorCode::timed_out);
  return right;
}

// Probe tries on a worker's own stack, where its wake runs.
struct Probe : RestingWait {
  EndlessWaits waits;
  int refused = 0;
  bool takes = false;
  coir::Event over;

  Probe() {
    wake = [](RestingWait& self) noexcept {
      auto& probe = static_cast<Probe&>(self);
      for (int way = 0; way < EndlessWaits::kWays; ++way) {
        probe.refused += is(probe.waits.wait_in(way), ErrorCode::unsupported);
      }
      probe.takes = takes_what_is_there();
      probe.over.set();
    };
  }
};

}  // namespace

// If nothing can be waited for, a wait fails at once and does not hang.
TEST_GROUP_BASE(NowhereToWait, Everywhere) {};

TEST(NowhereToWait, on_a_workers_own_stack_a_wait_is_unsupported) {
  everywhere([&] {
    Pipe pipe;
    Probe probe;
    const auto reading = probe.waits.lock.read();
    expect(reading.has_value());
    expect(coir::arm_resting_wait(probe, pipe.reader).has_value());
    expect(pipe.put());
    expect(probe.over.wait().has_value());
    expect(probe.refused == EndlessWaits::kWays);
    expect(probe.takes);
  });
}

TEST(NowhereToWait, on_a_plain_thread_a_wait_is_unsupported_in_single_worker_builds_only) {
  EndlessWaits waits;
  const auto reading = waits.lock.read();
  CHECK_TRUE(reading.has_value());
  for (int way = 0; way < EndlessWaits::kWays; ++way) {
    CancelScope scope(Deadline::after(1ms));
    const auto waited = waits.wait_in(way);
    CHECK_TRUE(is(waited, kManyWorkers ? ErrorCode::timed_out : ErrorCode::unsupported));
  }
  CHECK_TRUE(takes_what_is_there());
}

// A fiber that leaves its stack for a deep call may wait for nothing there: that would hold up its worker.
TEST(NowhereToWait, in_a_call_on_a_workers_stack_every_wait_is_unsupported) {
  everywhere([&] {
    Pipe pipe;
    EndlessWaits waits;
    const auto reading = waits.lock.read();
    expect(reading.has_value());
    coir::on_worker_stack([&] {
      for (int way = 0; way < EndlessWaits::kWays; ++way) expect(is(waits.wait_in(way), ErrorCode::unsupported));
      expect(is(coir::sleep(1h), ErrorCode::unsupported));
      expect(is(coir::sleep_until(Deadline::never()), ErrorCode::unsupported));
      expect(is(coir::wait(pipe.reader, coir::Direction::readable), ErrorCode::unsupported));
      const CancelScope scope;
      expect(is(coir::sleep(1h), ErrorCode::unsupported));
    });
  });
}

}  // namespace nowhere_to_wait_test
