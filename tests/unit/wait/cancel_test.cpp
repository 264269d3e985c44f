#include <CppUTest/TestHarness.h>
#include <coir/atomic.h>
#include <coir/broadcast.h>
#include <coir/channel.h>
#include <coir/condition.h>
#include <coir/event.h>
#include <coir/fiber.h>
#include <coir/mutex.h>
#include <coir/once.h>
#include <coir/runtime.h>
#include <coir/rw_lock.h>
#include <coir/select.h>
#include <coir/semaphore.h>
#include <coir/wait.h>
#include <coir/wait_group.h>
#include <pthread.h>

#include <atomic>
#include <expected>

#include "tests/support/pipe.h"
#include "tests/support/scale.h"
#include "tests/support/until.h"

namespace cancel_test {

using coir::Deadline;
using coir::Direction;
using coir::Error;
using coir::ErrorCode;
using coir::Fiber;
using coir::FiberRef;
using coir::kManyWorkers;
using coir::run_until_idle;
using coir::spawn;
using coir::test::Pipe;
using coir::test::scaled;
using coir::test::until_polled;
using namespace std::chrono_literals;

namespace {

bool is(const std::expected<void, Error>& outcome, ErrorCode code) {
  return !outcome && outcome.error() == code;
}

constexpr auto kForEver = 24h;

// The three waits that a fiber can be in. Nothing but a cancellation ends them.
void wait_in(int which, Pipe& pipe, bool& cancelled) {
  switch (which) {
    case 0:
      cancelled = is(coir::sleep(kForEver), ErrorCode::cancelled);
      break;
    case 1: {
      Fiber other = spawn([] { static_cast<void>(coir::sleep(kForEver)); });
      cancelled = is(other.join(), ErrorCode::cancelled);
      static_cast<void>(other.cancel());
      break;
    }
    case 2:
      cancelled = is(coir::wait(pipe.reader, Direction::readable), ErrorCode::cancelled);
      break;
  }
}

}  // namespace

TEST_GROUP(Cancel) {};

TEST(Cancel, ends_every_kind_of_wait_within_one_round) {
  for (int which = 0; which < 3; ++which) {
    bool cancelled = false, within_one_round = false;
    const auto ended = run_until_idle({.workers = 1}, [&] {
      Pipe pipe;
      Fiber fiber = spawn([&] { wait_in(which, pipe, cancelled); });
      for (int i = 0; i < 3; ++i) coir::yield();
      static_cast<void>(fiber.cancel());
      coir::yield();
      within_one_round = cancelled;
    });
    CHECK_TRUE(ended.has_value());
    CHECK_TRUE(cancelled);
    CHECK_TRUE(within_one_round);
  }
}

namespace {

// Shared is what fibers wait for, in a state in which everybody waits. Main holds the locks that the rounds below expect
// to be held.
struct Shared {
  coir::Mutex mutex, own;
  coir::Condition condition;
  coir::Semaphore semaphore{0};
  coir::Event event;
  coir::WaitGroup group{1};
  coir::RwLock lock;
  coir::Once once;
  coir::Channel<int> channel;
  coir::Broadcast<int> broadcast;

  static constexpr int kWays = 12;

  std::expected<void, Error> wait_in(int way) {
    int value = 0;
    switch (way) {
      case 0:
        return outcome_of(mutex.lock());
      case 1: {
        auto held = own.lock();
        return held ? condition.wait(*held) : outcome_of(held);
      }
      case 2:
        return semaphore.acquire();
      case 3:
        return event.wait();
      case 4:
        return group.wait();
      case 5:
        return outcome_of(lock.write());
      case 6:
        return outcome_of(lock.read());
      case 7:
        return once.call([] {});
      case 8:
        return channel.send(1);
      case 9:
        return outcome_of(channel.receive());
      case 10: {
        coir::Subscription<int> feed(broadcast);
        return outcome_of(feed.receive());
      }
      default:
        return outcome_of(coir::select({coir::Case::receive(channel, value), coir::Case::opened(event)}));
    }
  }

  template <class T>
  static std::expected<void, Error> outcome_of(const std::expected<T, Error>& outcome) {
    if (!outcome) return std::unexpected(outcome.error());
    return {};
  }
};

}  // namespace

TEST(Cancel, ends_every_wait_for_other_fibers_within_one_round) {
  for (int way = 0; way < Shared::kWays; ++way) {
    bool cancelled = false, within_one_round = false, still_cancelled = false;
    const auto ended = run_until_idle({.workers = 1}, [&] {
      Shared shared;
      auto held = shared.mutex.lock();
      auto writing = shared.lock.write();
      Fiber runner = spawn([&] {
        static_cast<void>(shared.once.call([]() -> std::expected<void, Error> { return coir::sleep(kForEver); }));
      });
      coir::yield();
      Fiber fiber = spawn([&] {
        cancelled = is(shared.wait_in(way), ErrorCode::cancelled);
        still_cancelled = is(shared.wait_in(way), ErrorCode::cancelled);
      });
      for (int i = 0; i < 3; ++i) coir::yield();
      static_cast<void>(fiber.cancel());
      coir::yield();
      within_one_round = cancelled;
      static_cast<void>(fiber.join());
      static_cast<void>(runner.cancel());
      static_cast<void>(runner.join());
      held->unlock();
      writing->unlock();
    });
    CHECK_TRUE(ended.has_value());
    CHECK_TRUE(within_one_round);
    CHECK_TRUE(still_cancelled);
  }
}

TEST(Cancel, stays_every_later_wait_fails_at_once) {
  int failed = 0;
  bool told = false, yields = false;
  const auto ended = run_until_idle({.workers = 2}, [&] {
    Pipe pipe;
    Fiber other = spawn([] { static_cast<void>(coir::sleep(kForEver)); });
    Fiber fiber = spawn([&] {
      failed += is(coir::sleep(kForEver), ErrorCode::cancelled);
      failed += is(coir::sleep(1ns), ErrorCode::cancelled);
      failed += is(coir::wait(pipe.reader, Direction::readable), ErrorCode::cancelled);
      failed += is(other.join(), ErrorCode::cancelled);
      told = coir::cancelled();
      coir::yield();
      yields = true;
    });
    static_cast<void>(fiber.cancel());
    static_cast<void>(fiber.join());
    static_cast<void>(other.cancel());
    static_cast<void>(other.join());
  });
  CHECK_TRUE(ended.has_value());
  LONGS_EQUAL(4, failed);
  CHECK_TRUE(told);
  CHECK_TRUE(yields);
}

TEST(Cancel, before_the_first_step_the_body_still_runs) {
  bool ran = false;
  const auto ended = run_until_idle({.workers = 1}, [&] {
    Fiber fiber = spawn([&] { ran = coir::cancelled() && is(coir::sleep(kForEver), ErrorCode::cancelled); });
    static_cast<void>(fiber.cancel());
    static_cast<void>(fiber.cancel());
    static_cast<void>(fiber.join());
  });
  CHECK_TRUE(ended.has_value());
  CHECK_TRUE(ran);
}

TEST(Cancel, of_oneself_fails_the_next_wait) {
  bool before = true, after = false;
  const auto ended = run_until_idle({.workers = 2}, [&] {
    before = coir::cancelled();
    static_cast<void>(coir::current().cancel());
    after = coir::cancelled() && is(coir::sleep(kForEver), ErrorCode::cancelled);
  });
  CHECK_TRUE(ended.has_value());
  CHECK_FALSE(before);
  CHECK_TRUE(after);
}

TEST(Cancel, of_an_ended_fiber_is_stale) {
  bool ended_stale = false, joined_stale = false, reused_stale = false, bystander = false;
  const auto ended = run_until_idle({.workers = 1}, [&] {
    Fiber fiber = spawn([] {});
    const FiberRef ref = fiber;
    coir::yield();
    ended_stale = is(ref.cancel(), ErrorCode::stale);
    static_cast<void>(fiber.join());
    joined_stale = is(ref.cancel(), ErrorCode::stale);
    // The hottest stack is used next: a new fiber lives where the old one did.
    Fiber next = spawn([&] { bystander = !coir::cancelled() && coir::sleep(1ms).has_value(); });
    reused_stale = is(ref.cancel(), ErrorCode::stale);
    static_cast<void>(next.join());
  });
  CHECK_TRUE(ended.has_value());
  CHECK_TRUE(ended_stale);
  CHECK_TRUE(joined_stale);
  CHECK_TRUE(reused_stale);
  CHECK_TRUE(bystander);
}

// A wait may return without having parked, when the descriptor is known to be ready. The cancellation that comes after
// it meets a fiber that runs, or is in line to run, and must not put it in line once more.
TEST(Cancel, after_a_wait_that_did_not_park_the_fiber_is_in_line_once) {
  for (const unsigned workers : {1u, 2u}) {
    std::atomic<int> steps{0}, returned{0};
    const auto ended = run_until_idle({.workers = workers}, [&] {
      Pipe pipe;
      Fiber fiber = spawn([&] {
        pipe.put();
        returned += coir::wait(pipe.reader, Direction::readable).has_value();  // registers; the edge comes
        pipe.drain();
        Fiber writer = spawn([&] { pipe.put(); });
        static_cast<void>(writer.join());
        until_polled();  // the poller notes the new edge
        returned += coir::wait(pipe.reader, Direction::readable).has_value();
        coir::yield();
        ++steps;
        coir::yield();
        ++steps;
      });
      Fiber canceller = spawn([&] {
        while (returned < 2) coir::yield();
        static_cast<void>(fiber.cancel());
        coir::yield();
      });
      static_cast<void>(canceller.join());
      static_cast<void>(fiber.join());
    });
    CHECK_TRUE(ended.has_value());
    LONGS_EQUAL(2, returned);
    LONGS_EQUAL(2, steps);
  }
}

TEST(Cancel, of_oneself_after_a_wait_that_did_not_park_is_harmless) {
  bool cancelled = false;
  int refused = 0;
  const auto ended = run_until_idle({.workers = 1}, [&] {
    Fiber fiber = spawn([&] {
      refused += !coir::wait(-1, Direction::readable);
      static_cast<void>(coir::current().cancel());
      coir::yield();
      cancelled = is(coir::sleep(kForEver), ErrorCode::cancelled);
    });
    static_cast<void>(fiber.join());
  });
  CHECK_TRUE(ended.has_value());
  LONGS_EQUAL(1, refused);
  CHECK_TRUE(cancelled);
}

namespace {

struct FromThread {
  FiberRef target;
  static void* cancel(void* self) {
    static_cast<void>(static_cast<FromThread*>(self)->target.cancel());
    return nullptr;
  }
};

}  // namespace

TEST(Cancel, a_plain_thread_wakes_what_sleeps_in_an_idle_runtime) {
  if (!kManyWorkers) return;
  for (const unsigned workers : {1u, 2u}) {
    for (int which = 0; which < 3; ++which) {
      bool cancelled = false;
      const auto ended = run_until_idle({.workers = workers}, [&] {
        Pipe pipe;
        FromThread from;
        Fiber fiber = spawn([&] { wait_in(which, pipe, cancelled); });
        coir::yield();
        from.target = fiber;
        pthread_t thread;
        pthread_create(&thread, nullptr, FromThread::cancel, &from);
        static_cast<void>(fiber.join());
        pthread_join(thread, nullptr);
      });
      CHECK_TRUE(ended.has_value());
      CHECK_TRUE(cancelled);
    }
  }
}

// The mark and the park race on different workers: whichever comes first, the wait ends.
TEST(Cancel, no_wait_outlives_a_cancellation_that_races_with_it) {
  constexpr int kRounds = scaled({4'000, 1'000, 1'000, 600});
  for (const bool migrate : {false, true}) {
    int cancelled = 0;
    const auto ended = run_until_idle({.workers = 2, .migrate = migrate}, [&] {
      Pipe pipe;
      for (int i = 0; i < kRounds; ++i) {
        bool was = false;
        Fiber fiber = spawn([&was, &pipe, i] { wait_in(i % 3, pipe, was); });
        for (int spin = 0; spin < i % 300; ++spin) asm volatile("");
        if (i % 2 == 0) coir::yield();
        static_cast<void>(fiber.cancel());
        static_cast<void>(fiber.join());
        cancelled += was;
      }
    });
    CHECK_TRUE(ended.has_value());
    LONGS_EQUAL(kRounds, cancelled);
  }
}

}  // namespace cancel_test
