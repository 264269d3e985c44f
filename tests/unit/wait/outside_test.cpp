#include <CppUTest/TestHarness.h>
#include <coir/atomic.h>
#include <coir/blocking.h>
#include <coir/broadcast.h>
#include <coir/cancel_scope.h>
#include <coir/cancellation.h>
#include <coir/channel.h>
#include <coir/condition.h>
#include <coir/event.h>
#include <coir/fiber.h>
#include <coir/group.h>
#include <coir/inspect.h>
#include <coir/ledger.h>
#include <coir/mutex.h>
#include <coir/nursery.h>
#include <coir/once.h>
#include <coir/runtime.h>
#include <coir/rw_lock.h>
#include <coir/select.h>
#include <coir/semaphore.h>
#include <coir/spinlock.h>
#include <coir/task.h>
#include <coir/trace.h>
#include <coir/wait.h>
#include <coir/wait_group.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <atomic>
#include <memory>

#include "core/src/schedule/visit.h"
#include "tests/support/scale.h"
#include "tests/support/thread.h"

namespace outside_test {

using coir::Case;
using coir::Deadline;
using coir::Error;
using coir::ErrorCode;
using coir::Fiber;
using coir::FiberRef;
using coir::kManyWorkers;
using coir::run_until_idle;
using coir::spawn;
using coir::Task;
using coir::test::scaled;
using coir::test::Thread;
using namespace std::chrono_literals;
namespace door = coir::door;

namespace {

// World is what the runs and the thread outside share. It outlives all of them.
struct World {
  coir::Spinlock lock;
  FiberRef fiber;  // of the latest run, which may have ended
  Task<int> task;  // the same, for who takes it
  coir::Event event;
  coir::Channel<int> channel{{.capacity = 8}};
  coir::Broadcast<int> news;
  coir::Mutex mutex;
  coir::RwLock rw_lock;
  coir::Condition condition;
  coir::Semaphore semaphore{0};
  coir::WaitGroup wait_group;
  coir::CancellationSource source;
  int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

  World() = default;
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World() { close(null); }

  FiberRef latest() {
    coir::Locked hold(lock);
    return fiber;
  }
  Task<int> take_task() {
    coir::Locked hold(lock);
    return std::move(task);
  }
};

// A call that a thread outside may make, and whether what came of it may be.
struct Call {
  const char* name;
  bool (*make)(World& world);
};

bool over(Error error) {
  return error == ErrorCode::stale || error == ErrorCode::unsupported || error == ErrorCode::cancelled;
}

constexpr auto kLong = 30s;  // what takes that long has been lost

// All of the public surface that reads, wakes, cancels or waits for something of a run. Functions that need no
// run (yield, sleep, wait on a descriptor, check_cancelled) are called in passing. dump_fibers_on is dump_fibers in a handler.
constexpr Call kCalls[] = {
    {"stats", [](World&) { return coir::stats().workers <= 2; }},
    {"dump_fibers", [](World& world) { return coir::dump_fibers(world.null), true; }},
    {"list_fibers",
     [](World&) {
       coir::FiberInfo some[4];
       return coir::list_fibers(some) < 1'000;
     }},
    {"inspect",
     [](World& world) {
       const auto info = coir::inspect(world.latest());
       return info || info.error() == ErrorCode::stale;
     }},
    {"write_trace", [](World& world) { return static_cast<void>(coir::write_trace(world.null)), true; }},
    {"close_fd", [](World& world) { return coir::close_fd(dup(world.null)), true; }},
    {"shutdown", [](World&) { return coir::shutdown(), true; }},
    {"spawn and join",
     [](World&) {
       bool ran = false;  // joined before it is read
       Fiber fiber = spawn([&ran] { ran = true; });
       if (!fiber.started()) return fiber.error() == ErrorCode::unsupported;
       const auto joined = fiber.join(Deadline::after(kLong));
       return joined ? ran : over(joined.error());
     }},
    {"spawn too much",  // what comes to nothing is no fiber that the end waits for
     [](World&) { return !spawn({.stack = 1 << 30}, [] {}).started(); }},
    {"spawn and drop",
     [](World&) {
       Fiber fiber = spawn([] {});
       const FiberRef ref = fiber;
       fiber.detach();
       while (ref.alive()) coir::yield();  // faster than they end, the run would have work for ever
       return true;
     }},
    {"spawn and await",
     [](World&) {
       Task<int> task = spawn([] { return 7; });
       const auto result = task.await(Deadline::after(kLong));
       return result ? *result == 7 : over(result.error());
     }},
    {"status of a fiber",
     [](World& world) {
       const Task<int> task = world.take_task();
       static_cast<void>(task.status());
       return task.done() || world.latest().alive() || true;
     }},
    {"cancel a fiber",
     [](World& world) {
       const auto cancelled = world.latest().cancel("outside");
       return cancelled || cancelled.error() == ErrorCode::stale;
     }},
    {"await a fiber of the run",
     [](World& world) {
       Task<int> task = world.take_task();
       const auto result = task.await(Deadline::after(kLong));
       return result ? *result == 42 : over(result.error());
     }},
    {"drop a fiber of the run", [](World& world) { return static_cast<void>(world.take_task()), true; }},
    {"select on the end of a fiber",
     [](World& world) {
       Task<int> task = world.take_task();
       return coir::select({Case::ended(task)}, Deadline::after(kLong)).has_value();
     }},
    {"select on it in vain",
     [](World& world) {
       Task<int> task = world.take_task();
       return coir::select({Case::ended(task), Case::after(1us)}).has_value();
     }},
    {"nursery",
     [](World&) {
       coir::Nursery nursery;
       nursery.start([] { coir::yield(); });
       const auto joined = nursery.join();
       return joined || over(joined.error());
     }},
    {"group",
     [](World&) {
       coir::Group group;
       const auto gone = group.start([] { coir::yield(); });
       const auto waited = group.join();
       return (gone || over(gone.error())) && (waited || over(waited.error()));
     }},
    {"event", [](World& world) { return world.event.set(), true; }},
    {"channel",
     [](World& world) {
       static_cast<void>(world.channel.send(1, Deadline::now()));
       return static_cast<void>(world.channel.receive(Deadline::now())), true;
     }},
    {"broadcast", [](World& world) { return world.news.publish(1).has_value(); }},
    {"mutex", [](World& world) { return world.mutex.lock(Deadline::after(kLong)).has_value(); }},
    {"reader-writer lock", [](World& world) { return world.rw_lock.write(Deadline::after(kLong)).has_value(); }},
    {"condition", [](World& world) { return world.condition.notify_all(), true; }},
    {"semaphore",
     [](World& world) {
       world.semaphore.release();
       return static_cast<void>(world.semaphore.try_acquire()), true;
     }},
    {"wait group",
     [](World& world) {
       world.wait_group.add();
       return world.wait_group.done(), true;
     }},
    {"cancellation source",
     [](World&) {
       coir::CancellationSource source;
       return source.cancel("outside"), true;
     }},
    {"cancel scope",
     [](World&) {
       coir::CancelScope scope;
       scope.cancel("outside");
       return !coir::check_cancelled().has_value() && coir::sleep(1h).error() == ErrorCode::cancelled;
     }},
    {"blocking", [](World&) { return coir::blocking([] { return 3; }).value_or(0) == 3; }},
};

// A run as others are: fibers that wait for what the thread brings, or in vain, and end.
std::expected<void, Error> run_once(World& world) {
  return run_until_idle({.workers = 2}, [&] {
    spawn([&world] { static_cast<void>(world.event.wait(Deadline::after(20us))); }).detach();
    spawn([&world] {
      if (const auto held = world.mutex.lock(); held) coir::yield();
      if (const auto held = world.rw_lock.write(); held) coir::yield();
    }).detach();
    Task<int> task = spawn([] {
      coir::yield();
      return 42;
    });
    coir::Locked hold(world.lock);
    world.fiber = task;
    world.task = std::move(task);
  });
}

}  // namespace

TEST_GROUP(Outside) {};

TEST(Outside, every_call_of_a_plain_thread_may_meet_the_end_of_a_run) {
  if (!kManyWorkers) return;  // there a second thread touches nothing of a run
  for (const Call& call : kCalls) {
    World world;
    std::atomic<bool> stop{false};
    std::atomic<int> made{0}, wrong{0};
    Thread caller([&] {
      while (!stop) {
        wrong += !call.make(world);
        ++made;
      }
    });
    for (int round = 0; round < scaled({60, 30, 20, 20}) || made == 0; ++round) {
      if (!run_once(world)) ++wrong;
    }
    stop = true;
    caller.join();
    if (wrong != 0) printf("%s: %d wrong of %d\n", call.name, wrong.load(), made.load());
    LONGS_EQUAL(0, wrong);
  }
  LONGS_EQUAL(0, coir::account::stacks.used());
}

TEST(Outside, a_run_ends_though_threads_visit_it_without_a_pause) {
  if (!kManyWorkers) return;
  World world;
  std::atomic<bool> stop{false};
  const auto visit = [&] {
    while (!stop) {
      coir::CancellationSource source;
      source.cancel("outside");
      static_cast<void>(coir::stats());
    }
  };
  Thread one(visit), two(visit), three(visit);
  int ended = 0;
  for (int round = 0; round < scaled({100, 60, 40, 40}); ++round) ended += run_once(world).has_value();
  stop = true;
  LONGS_EQUAL(scaled({100, 60, 40, 40}), ended);
}

// The door, by itself.
TEST(Outside, a_thread_that_comes_after_the_end_was_decided_does_not_delay_it) {
  CHECK_FALSE(door::enter());
  door::open();
  CHECK_TRUE(door::enter());
  CHECK_TRUE(door::close_unless_brought(door::seen()));
  CHECK_FALSE(door::enter());
  CHECK_FALSE(door::enter_with_fiber());
  door::leave();
  door::close();
}

TEST(Outside, a_fiber_that_is_brought_keeps_the_run_from_ending) {
  door::open();
  const std::uint64_t before = door::seen();
  CHECK_TRUE(door::enter_with_fiber());
  CHECK_FALSE(door::close_unless_brought(before));
  const std::uint64_t meanwhile = door::seen();
  CHECK_FALSE(door::close_unless_brought(meanwhile));  // it is on its way
  door::brought();
  CHECK_FALSE(door::close_unless_brought(meanwhile));
  CHECK_FALSE(door::close_unless_brought(before));  // it may stand in a queue that was looked at before
  CHECK_TRUE(door::close_unless_brought(door::seen()));
  door::leave();
  door::close();
}

}  // namespace outside_test
