#include <coir/blocking.h>

#include <CppUTest/TestHarness.h>
#include <coir/cancel_scope.h>
#include <coir/cancellation.h>
#include <coir/event.h>
#include <coir/fiber.h>
#include <coir/nursery.h>
#include <coir/runtime.h>
#include <coir/semaphore.h>
#include <coir/wait_group.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <memory>

#include "tests/support/everywhere.h"
#include "tests/support/gate.h"
#include "tests/support/scale.h"
#include "tests/support/until.h"

namespace blocking_test {

using coir::blocking;
using coir::blocking_borrowed;
using coir::BlockingStop;
using coir::CancelScope;
using coir::Deadline;
using coir::Error;
using coir::ErrorCode;
using coir::Fiber;
using coir::spawn;
using coir::test::await;
using coir::test::Gate;
using coir::test::scaled;
using coir::test::until;
using namespace std::chrono_literals;

namespace {

// Owned counts its live objects: a dropped one must be destroyed, once.
struct Owned {
  static inline std::atomic<int> alive{0};
  int value;
  explicit Owned(int v) noexcept : value(v) { ++alive; }
  Owned(Owned&& other) noexcept : value(other.value) { ++alive; }
  Owned(const Owned& other) = delete;
  ~Owned() { --alive; }
};

// is_asked blocks until the stop is wanted, or for so long that it never will be.
bool is_asked(const BlockingStop& stop) noexcept {
  return until([&] { return stop.wanted(); }, Deadline::after(100s));
}

}  // namespace

TEST_GROUP_BASE(Blocking, coir::test::Everywhere) {};

TEST(Blocking, returns_what_the_function_returns) {
  everywhere([&] {
    const auto sum = blocking([] { return 40 + 2; });
    expect(sum && *sum == 42);
    const auto nothing = blocking([] {});
    expect(nothing.has_value());
    const auto failed =
        blocking([]() -> std::expected<int, Error> { return std::unexpected(Error::from_errno(ENOENT)); });
    expect(!failed && failed.error().sys == ENOENT);
    auto moved = blocking([p = std::make_unique<int>(7)]() mutable { return std::move(p); });
    expect(moved && **moved == 7);
  });
}

TEST(Blocking, runs_on_another_thread_and_the_worker_goes_on_meanwhile) {
  everywhere([&] {
    const pthread_t worker = pthread_self();
    Gate gate;
    std::atomic<bool> elsewhere{false};
    Fiber waits = spawn([&] {
      const auto ran = blocking([&] {
        gate.pass();  // opened by a fiber, which therefore runs
        elsewhere = pthread_equal(pthread_self(), worker) == 0;
      });
      expect(ran.has_value());
    });
    Fiber opens = spawn([&] { gate.open(); });
    expect(waits.join().has_value());
    expect(opens.join().has_value());
    expect(elsewhere);
  });
}

TEST(Blocking, runs_in_place_on_a_plain_thread) {
  const pthread_t self = pthread_self();
  const auto same = blocking([self] { return pthread_equal(pthread_self(), self) != 0; });
  CHECK_TRUE(same && *same);
  const auto stopped = blocking_borrowed([](const BlockingStop& stop) { return stop.wanted(); }, Deadline::now());
  CHECK_TRUE(stopped && *stopped);
}

TEST(Blocking, at_the_deadline_the_caller_goes_on_and_the_late_result_is_destroyed) {
  static Gate gate;
  everywhere([&] {
    // A loaded machine may not begin it in time: it is asked again with more.
    bool begun = false;
    for (auto span = 5ms; !begun; span *= 2) {
      const Deadline deadline = Deadline::after(span);
      const auto late = blocking(
          [held = Owned(1)] {
            gate.pass();
            return Owned(2);
          },
          deadline);
      expect(!late && late.error() == ErrorCode::timed_out);
      expect(deadline.passed());
      begun = Owned::alive != 0;  // what the function owns has moved to its thread
    }
    gate.open();
    await(Owned::alive, 0);
  });
}

TEST(Blocking, a_cancelled_caller_goes_on_and_the_late_result_is_destroyed) {
  static Gate gate, begun;
  everywhere([&] {
    Fiber waits = spawn([&] {
      const auto cut = blocking([held = Owned(1)] {
        begun.open();
        gate.pass();
        return Owned(2);
      });
      expect(!cut && cut.error() == ErrorCode::cancelled);
      const auto again = blocking([] { return 1; });  // it stays cancelled: never begun
      expect(!again && again.error() == ErrorCode::cancelled);
    });
    coir::yield();
    expect(blocking([] { begun.pass(); }).has_value());
    expect(waits.cancel().has_value());
    expect(waits.join().has_value());
    gate.open();
    await(Owned::alive, 0);
  });
}

TEST(Blocking, a_borrowing_call_that_has_begun_is_waited_for_and_told_to_stop) {
  everywhere([&] {
    Gate begun;
    Fiber waits = spawn([&] {
      std::array<char, 64> mine{};  // gone when the fiber is
      const auto cut = blocking_borrowed([&](const BlockingStop& stop) -> std::expected<int, Error> {
        begun.open();
        expect(is_asked(stop));
        mine.fill('x');
        return std::unexpected(stop.why());
      });
      expect(!cut && cut.error() == ErrorCode::cancelled);
      expect(mine[0] == 'x' && mine[63] == 'x');
    });
    coir::yield();
    expect(blocking([&] { begun.pass(); }).has_value());
    expect(waits.cancel().has_value());
    expect(waits.join().has_value());
  });
}

TEST(Blocking, a_borrowing_call_that_has_begun_is_waited_for_also_when_a_scope_ends) {
  everywhere([&] {
    for (const bool by_deadline : {false, true}) {
      Gate begun;
      bool entered = false, ended = false;
      // A loaded machine may not begin it in time: it is asked again with more.
      for (auto span = 5ms; !entered; span *= 2) {
        CancelScope outer(by_deadline ? Deadline::after(span) : Deadline::never());
        coir::Nursery nursery;
        if (!by_deadline) {
          expect(nursery
                     .spawn([&] {
                       expect(blocking([&] { begun.pass(); }).has_value());
                       outer.cancel("enough");
                     })
                     .started());
        }
        const auto cut = coir::with_timeout(1h, [&] {
          return blocking_borrowed([&](const BlockingStop& stop) -> std::expected<int, Error> {
            entered = true;
            begun.open();
            expect(is_asked(stop));
            usleep(2'000);  // a caller that does not wait is back by now
            ended = true;
            return std::unexpected(stop.why());
          });
        });
        expect(ended == entered);
        expect(!cut && cut.error() == (by_deadline ? ErrorCode::timed_out : ErrorCode::cancelled));
        expect(!cut && outer.caused(cut.error()));
        static_cast<void>(nursery.join());
      }
    }
  });
}

TEST(Blocking, a_borrowing_call_sees_its_deadline_itself) {
  everywhere([&] {
    bool begun = false, stopped = false;
    // A loaded machine may not begin it in time: it is asked again with more.
    for (auto span = 5ms; !begun; span *= 2) {
      const auto cut = blocking_borrowed(
          [&](const BlockingStop& stop) -> std::expected<int, Error> {
            begun = true;
            expect(is_asked(stop));
            stopped = true;
            return std::unexpected(stop.why());
          },
          Deadline::after(span));
      expect(!cut && cut.error() == ErrorCode::timed_out);
    }
    expect(stopped);
  });
}

TEST(Blocking, shutdown_ends_owned_calls_at_once_and_borrowing_ones_when_they_stop) {
  static Gate gate;
  static std::atomic<int> passed;
  everywhere([&] {
    std::atomic<int> ended{0}, begun{0};
    passed = 0;
    Fiber owned = spawn([&] {
      expect(!blocking([&begun] {
                ++begun;
                gate.pass();
                ++passed;
              }).has_value());
      ++ended;
    });
    Fiber borrowed = spawn([&] {
      expect(blocking_borrowed([&](const BlockingStop& stop) {
               ++begun;
               expect(is_asked(stop));
             }).has_value());
      ++ended;
    });
    until([&] { return begun == 2; });
    owned.detach();
    borrowed.detach();
    coir::shutdown();
    // The fibers refer to main's variables: main waits without parking, because it is cancelled too.
    while (ended != 2) coir::yield();
    gate.open();
    await(passed, 1);
  });
}

// In builds with one worker the worker sleeps in the poller meanwhile, and the thread may not touch what fibers use.
TEST(Blocking, memory_that_the_function_releases_is_released_while_it_runs) {
  everywhere([&] {
    std::atomic<int> woken{0};
    coir::Event event;
    coir::WaitGroup group(1);
    coir::Semaphore permits(0);
    coir::CancellationSource source;
    CancelScope* waiting = nullptr;
    coir::Nursery fibers;
    fibers.start([&] { woken += event.wait().has_value(); });
    fibers.start([&] { woken += group.wait().has_value(); });
    fibers.start([&] { woken += permits.acquire(3).has_value(); });
    Fiber sleeper = spawn([&] { woken += coir::sleep(24h).error() == ErrorCode::cancelled; });
    Fiber scoped = spawn([&] {
      CancelScope scope;
      waiting = &scope;
      woken += coir::sleep(24h).error() == ErrorCode::cancelled;
    });
    Fiber watched = spawn([&] {
      CancelScope scope;
      const coir::CancellationWatch watch(source.token(), scope);
      woken += coir::sleep(24h).error() == ErrorCode::cancelled;
    });
    for (const Fiber* each : {&sleeper, &scoped, &watched}) coir::test::until_parked(*each, "sleep");
    const auto called = blocking([&] {
      const auto others = [&](int count) { return until([&] { return woken == count; }, Deadline::after(100s)); };
      event.set();
      if (!others(1)) return 1;
      group.done();
      if (!others(2)) return 2;
      permits.release(3);
      if (!others(3)) return 3;
      if (!sleeper.cancel() || !others(4)) return 4;
      waiting->cancel();
      if (!others(5)) return 5;
      source.cancel();
      return others(6) ? 0 : 6;
    });
    expect(called && *called == 0);
    expect(fibers.join().has_value());
    for (Fiber* each : {&sleeper, &scoped, &watched}) expect(each->join().has_value());
  });
}

TEST(Blocking, many_fibers_with_and_without_deadlines_lose_no_wakeup) {
  constexpr int kFibers = 50, kRounds = scaled({100, 20, 20, 10});
  everywhere([&] {
    Fiber fibers[kFibers];
    for (int n = 0; n < kFibers; ++n) {
      fibers[n] = spawn([&, n] {
        for (int i = 0; i < kRounds; ++i) {
          if ((n + i) % 3 == 0) {
            const auto maybe = blocking(
                [] {
                  sched_yield();
                  return Owned(3);
                },
                Deadline::after(std::chrono::microseconds(i * 10)));
            expect(maybe || maybe.error() == ErrorCode::timed_out);
          } else {
            const auto value = blocking([i] { return i; });
            expect(value && *value == i);
          }
        }
      });
    }
    for (Fiber& fiber : fibers) expect(fiber.join().has_value());
    await(Owned::alive, 0);
  });
}

}  // namespace blocking_test
