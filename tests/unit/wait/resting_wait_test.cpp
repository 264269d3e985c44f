#include <CppUTest/TestHarness.h>
#include <coir/event.h>
#include <coir/fiber.h>
#include <coir/resting_wait.h>
#include <coir/runtime.h>
#include <coir/wait.h>

#include <atomic>
#include <string_view>

#include "tests/support/everywhere.h"
#include "tests/support/pipe.h"
#include "tests/support/scale.h"
#include "tests/support/thread.h"
#include "tests/support/until.h"

namespace resting_wait_test {

using coir::arm_resting_wait;
using coir::Deadline;
using coir::Direction;
using coir::disarm_resting_wait;
using coir::ErrorCode;
using coir::Fiber;
using coir::RestingWait;
using coir::run_until_idle;
using coir::spawn;
using coir::test::Everywhere;
using coir::test::Pipe;
using coir::test::scaled;
using coir::test::until;
using coir::test::until_blocked;
using coir::test::until_polled;
using namespace std::chrono_literals;

namespace {

// Record counts its wakes; each spawns a fiber, as wakes are meant to.
struct Record : RestingWait {
  Record() noexcept {
    wake = [](RestingWait& self) noexcept {
      auto& record = static_cast<Record&>(self);
      ++record.wakes;
      spawn([&record] { ++record.served; }).detach();
    };
  }
  std::atomic<int> wakes{0}, served{0};

  void await_served(int count) {
    until([&] { return served >= count; });
  }
};

}  // namespace

TEST_GROUP_BASE(RestingWait, Everywhere) {};

TEST(RestingWait, bytes_wake_it_once_and_its_wake_spawns) {
  everywhere([&] {
    Pipe pipe;
    Record record;
    expect(arm_resting_wait(record, pipe.reader).has_value());
    until_polled();
    expect(record.wakes == 0);
    expect(pipe.put());
    record.await_served(1);
    expect(pipe.put());
    until_polled();
    expect(record.wakes == 1);
  });
}

TEST(RestingWait, bytes_that_are_there_already_wake_it_or_are_told) {
  everywhere([&] {
    Pipe pipe;
    Record record;
    expect(pipe.put());
    // The first arming registers the descriptor, and the kernel reports its present state.
    if (const auto armed = arm_resting_wait(record, pipe.reader); armed) {
      record.await_served(1);
    } else {
      expect(armed.error() == ErrorCode::busy);
    }
  });
}

// With epoll, whose edge comes while nobody sleeps there; ppoll is asked about descriptors that somebody waits for.
TEST(RestingWait, a_known_readiness_is_busy_and_the_next_arming_sleeps) {
  const auto ended = run_until_idle({.workers = 1}, [&] {
    if (std::string_view(coir::stats().poller) != "epoll") return;
    Pipe pipe;
    Record record;
    expect(!coir::wait(pipe.reader, Direction::readable, Deadline::after(1ms)));
    expect(pipe.put());
    until_polled();  // the worker notes the edge
    const auto armed = arm_resting_wait(record, pipe.reader);
    expect(!armed && armed.error() == ErrorCode::busy);
    pipe.drain();
    expect(arm_resting_wait(record, pipe.reader).has_value());
    until_polled();
    expect(record.wakes == 0 && disarm_resting_wait(record));
  });
  CHECK_TRUE(ended.has_value());
  check();
}

TEST(RestingWait, disarmed_it_is_not_woken_and_may_sleep_again) {
  everywhere([&] {
    Pipe pipe;
    Record record;
    for (int round = 0; round < 5; ++round) {
      expect(arm_resting_wait(record, pipe.reader).has_value());
      expect(disarm_resting_wait(record));
      expect(!disarm_resting_wait(record));
    }
    expect(pipe.put());
    until_polled();
    expect(record.wakes == 0);
  });
}

#if !COIR_SINGLE_WORKER
TEST(RestingWait, a_plain_thread_arms_and_disarms_it) {
  everywhere([&] {
    Pipe pipe;
    Record record;
    coir::Event armed;
    coir::test::Thread thread([&] {
      expect(arm_resting_wait(record, pipe.reader).has_value());
      expect(disarm_resting_wait(record));
      expect(arm_resting_wait(record, pipe.reader).has_value());
      armed.set();
    });
    expect(armed.wait().has_value());
    expect(record.wakes == 0 && pipe.put());
    record.await_served(1);
    thread.join();
  });
}
#endif

TEST(RestingWait, a_waiter_on_the_same_descriptor_makes_it_busy) {
  everywhere([&] {
    Pipe pipe;
    Record record, second;
    expect(arm_resting_wait(record, pipe.reader).has_value());
    const auto other = arm_resting_wait(second, pipe.reader);
    expect(!other && other.error() == ErrorCode::busy);
    const auto waited = coir::wait(pipe.reader, Direction::readable, Deadline::after(1ms));
    expect(!waited && waited.error() == ErrorCode::busy);
    expect(disarm_resting_wait(record));
  });
}

TEST(RestingWait, a_hang_up_wakes_it) {
  for (const Pipe::Kind kind : {Pipe::Kind::pipe, Pipe::Kind::sockets}) {
    everywhere([&] {
      Pipe pipe(kind);
      Record record;
      expect(arm_resting_wait(record, pipe.reader).has_value());
      until_polled();
      pipe.close_writer();
      record.await_served(1);
      expect(record.wakes == 1);
    });
  }
}

// Served and asleep again before the peer's end comes: that edge must wake it too.
TEST(RestingWait, a_hang_up_after_a_first_request_wakes_it) {
  everywhere([&] {
    Pipe pipe(Pipe::Kind::sockets);
    Record record;
    expect(arm_resting_wait(record, pipe.reader).has_value());
    expect(pipe.put());
    record.await_served(1);
    pipe.drain();
    if (arm_resting_wait(record, pipe.reader)) {
      pipe.close_writer();
      record.await_served(2);
    }
  });
}

TEST(RestingWait, bytes_and_hang_up_together_are_both_served) {
  everywhere([&] {
    Pipe pipe(Pipe::Kind::sockets);
    Record record;
    expect(arm_resting_wait(record, pipe.reader).has_value());
    expect(pipe.put());
    pipe.close_writer();
    record.await_served(1);
    expect(pipe.get());
    // The end is news of its own: sleeping on it either fails or wakes at once.
    if (arm_resting_wait(record, pipe.reader)) record.await_served(2);
  });
}

TEST(RestingWait, closing_its_descriptor_forgets_it) {
  everywhere([&] {
    Pipe pipe;
    Record record;
    expect(arm_resting_wait(record, pipe.reader).has_value());
    pipe.close_reader();
    until_polled();
    expect(record.wakes == 0);
    // The run ends though the record was never disarmed.
  });
}

TEST(RestingWait, it_keeps_the_run_going_without_a_fiber_or_a_stack) {
  Pipe pipe;
  Record record;
  std::atomic<std::uint64_t> alive{99};
  std::atomic<std::uint32_t> waits{99};
  for (const unsigned workers : {1u, 2u}) {
    record.wakes = record.served = 0;
    static std::atomic<std::uint64_t>* told = &alive;
    const auto ended = run_until_idle({.workers = workers}, [&] {
      record.wake = [](RestingWait& self) noexcept {
        told->store(coir::stats().fibers_alive);
        ++static_cast<Record&>(self).wakes;
      };
      expect(arm_resting_wait(record, pipe.reader).has_value());
      waits = coir::stats().fd_waits;
      expect(pipe.put());
    });
    CHECK_TRUE(ended.has_value());
    LONGS_EQUAL(1, record.wakes);
    LONGS_EQUAL(1, waits);
    CHECK_TRUE(alive <= 1);
    pipe.drain();
  }
  check();
}

#if !COIR_SINGLE_WORKER
TEST(RestingWait, a_plain_thread_that_ends_the_last_one_ends_the_run) {
  const pid_t main = gettid();
  for (const unsigned workers : {1u, 2u}) {
    for (const bool closes : {false, true}) {
      Pipe pipe;
      Record record;
      std::atomic<bool> armed{false};
      coir::test::Thread thread([&] {
        until([&] { return armed && coir::stats().fibers_alive == 0; });
        until_blocked(main);
        if (closes) {
          pipe.close_reader();
        } else if (!disarm_resting_wait(record)) {
          armed = false;
        }
      });
      const auto ended = run_until_idle({.workers = workers}, [&] {
        expect(arm_resting_wait(record, pipe.reader).has_value());
        armed = true;
      });
      thread.join();
      CHECK_TRUE(ended.has_value());
      CHECK_TRUE(armed);
    }
  }
  check();
}
#endif

TEST(RestingWait, shutdown_ends_a_run_in_which_records_sleep) {
  Pipe pipe;
  Record record;
  everywhere([&] {
    expect(arm_resting_wait(record, pipe.reader).has_value());
    coir::shutdown();
  });
  LONGS_EQUAL(0, record.wakes);
}

TEST(RestingWait, thousands_sleep_and_each_is_woken_once) {
  constexpr int kRecords = scaled({2'000, 1'000, 800, 500});
  everywhere([&] {
    auto* const pipes = new Pipe[kRecords];
    auto* const records = new Record[kRecords];
    int armed = 0;
    for (int i = 0; i < kRecords; ++i) armed += arm_resting_wait(records[i], pipes[i].reader).has_value();
    expect(armed == kRecords);
    for (int i = 0; i < kRecords; ++i) expect(pipes[i].put());
    for (int i = 0; i < kRecords; ++i) records[i].await_served(1);
    for (int i = 0; i < kRecords; ++i) expect(records[i].wakes == 1);
    delete[] records;
    delete[] pipes;
  });
}

// Arming races with the bytes that end it, on another worker: the record wakes once, or arming fails.
TEST(RestingWait, arming_may_race_with_the_bytes) {
  for (const bool ppoll : {false, true}) {
    std::atomic<int> told{0}, woken{0}, doubled{0};
    constexpr int kRounds = scaled({3'000, 1'000, 800, 500});
    const auto ended = run_until_idle({.workers = 3, .force_ppoll = ppoll}, [&] {
      Pipe pipe;
      for (int i = 0; i < kRounds; ++i) {
        Record record;
        Fiber writer = spawn([&pipe] { pipe.put(); });
        for (int spin = 0; spin < i % 500; ++spin) asm volatile("");
        while (!arm_resting_wait(record, pipe.reader)) {
          // Known to be readable: go on, as a server would.
          if (pipe.get()) {
            ++told;
            break;
          }
        }
        static_cast<void>(writer.join());
        if (record.fd >= 0 && told + woken == i) {
          while (record.served == 0) coir::yield();
          ++woken;
          pipe.drain();
        }
        doubled += record.wakes > 1;
        if (disarm_resting_wait(record)) ++doubled;
      }
    });
    CHECK_TRUE(ended.has_value());
    LONGS_EQUAL(kRounds, told + woken);
    LONGS_EQUAL(0, doubled);
  }
}

}  // namespace resting_wait_test
