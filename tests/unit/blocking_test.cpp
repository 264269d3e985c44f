#include <coir/blocking.h>

#include <CppUTest/TestHarness.h>
#include <coir/fiber.h>
#include <coir/ledger.h>
#include <coir/runtime.h>
#include <dirent.h>
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <memory>

#include "board.h"
#include "tests/support/everywhere.h"
#include "tests/support/scale.h"

using coir::blocking;
using coir::blocking_borrowed;
using coir::BlockingStop;
using coir::Deadline;
using coir::Error;
using coir::ErrorCode;
using coir::Fiber;
using coir::run_until_idle;
using coir::spawn;
using coir::test::scaled;
using namespace std::chrono_literals;

namespace {

// Gate is closed until it is opened, once for each who passes; for threads of the pool.
class Gate {
 public:
  Gate() noexcept { sem_init(&open_, 0, 0); }
  ~Gate() { sem_destroy(&open_); }
  void open() noexcept { sem_post(&open_); }
  void pass() noexcept {
    while (sem_wait(&open_) != 0) {
    }
  }

 private:
  sem_t open_;
};

int count_threads() noexcept {
  DIR* const folder = opendir("/proc/self/task");
  int count = 0;
  while (const dirent* const entry = readdir(folder)) count += entry->d_name[0] != '.';
  closedir(folder);
  return count;
}

// Sanitizers and emulators have threads of their own.
// A sanitizer starts one of its own with the first.
const int kThreadsAtStart = [] {
  pthread_t first;
  const auto nothing = [](void*) -> void* { return nullptr; };
  if (pthread_create(&first, nullptr, nothing, nullptr) == 0) pthread_join(first, nullptr);
  return count_threads();
}();

// Owned counts how many of its kind are alive: what is dropped must be destroyed, once.
struct Owned {
  static inline std::atomic<int> alive{0};
  int value;
  explicit Owned(int v) noexcept : value(v) { ++alive; }
  Owned(Owned&& other) noexcept : value(other.value) { ++alive; }
  Owned(const Owned& other) = delete;
  ~Owned() { --alive; }
};

void await(std::atomic<int>& word, int value) noexcept {
  while (word.load() != value) usleep(1000);
}

}  // namespace

TEST_GROUP_BASE(Blocking, coir::test::Everywhere){};

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
    {
      const Deadline deadline = Deadline::after(5ms);
      const auto late = blocking(
          [held = Owned(1)] {
            gate.pass();
            return Owned(2);
          },
          deadline);
      expect(!late && late.error() == ErrorCode::timed_out);
      expect(deadline.passed());
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
        while (!stop.wanted()) usleep(200);
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

TEST(Blocking, a_borrowing_call_sees_its_deadline_itself) {
  everywhere([&] {
    bool begun = false, stopped = false;
    // A loaded machine may not begin it in time: it is asked again with more.
    for (auto span = 5ms; !begun; span *= 2) {
      const auto cut = blocking_borrowed(
          [&](const BlockingStop& stop) -> std::expected<int, Error> {
            begun = true;
            while (!stop.wanted()) usleep(200);
            stopped = true;
            return std::unexpected(stop.why());
          },
          Deadline::after(span));
      expect(!cut && cut.error() == ErrorCode::timed_out);
    }
    expect(stopped);
  });
}

TEST(Blocking, no_more_threads_than_the_board_allows_and_the_rest_wait_their_turn) {
  everywhere([&] {
    constexpr int kCalls = 3 * static_cast<int>(coir::board::kBlockingThreads);
    Gate gate;
    std::atomic<int> inside{0}, most{0}, done{0};
    Fiber fibers[kCalls];
    for (Fiber& fiber : fibers) {
      fiber = spawn([&] {
        const auto ran = blocking([&] {
          const int now = ++inside;
          int seen = most.load();
          while (now > seen && !most.compare_exchange_weak(seen, now)) {
          }
          gate.pass();
          --inside;
          ++done;
        });
        expect(ran.has_value());
      });
    }
    while (inside != static_cast<int>(coir::board::kBlockingThreads)) expect(coir::sleep(1ms).has_value());
    const auto queued = blocking_borrowed([](const BlockingStop&) {}, Deadline::after(5ms));
    expect(!queued && queued.error() == ErrorCode::timed_out);
    for (int i = 0; i < kCalls; ++i) gate.open();
    for (Fiber& fiber : fibers) expect(fiber.join().has_value());
    expect(done == kCalls);
    expect(most == static_cast<int>(coir::board::kBlockingThreads));
  });
}

TEST(Blocking, a_call_that_waits_its_turn_leaves_the_queue_at_its_deadline) {
  everywhere([&] {
    constexpr int kThreads = static_cast<int>(coir::board::kBlockingThreads);
    Gate gate;
    std::atomic<int> inside{0};
    Fiber fibers[kThreads];
    for (Fiber& fiber : fibers) {
      fiber = spawn([&] {
        expect(blocking([&] {
                 ++inside;
                 gate.pass();
               }).has_value());
      });
    }
    while (inside != kThreads) expect(coir::sleep(1ms).has_value());
    std::atomic<bool> ran{false};
    const auto late = blocking([&] { ran = true; }, Deadline::after(5ms));
    expect(!late && late.error() == ErrorCode::timed_out);
    for (int i = 0; i < kThreads; ++i) gate.open();
    for (Fiber& fiber : fibers) expect(fiber.join().has_value());
    expect(blocking([] {}).has_value());
    expect(!ran);
  });
}

TEST(Blocking, threads_go_away_when_idle_and_their_stacks_are_refunded) {
  const std::size_t charged = coir::account::stacks.used();
  CHECK_TRUE(run_until_idle({.workers = 1}, [&] { expect(blocking([] { return 1; }).has_value()); }).has_value());
  for (int i = 0; i < 5000 && count_threads() > kThreadsAtStart; ++i) usleep(1000);
  LONGS_EQUAL(kThreadsAtStart, count_threads());
  // In single-worker builds the next call refunds what the last left.
  CHECK_TRUE(run_until_idle({.workers = 1}, [&] { expect(blocking([] { return 1; }).has_value()); }).has_value());
  for (int i = 0; i < 5000 && count_threads() > kThreadsAtStart; ++i) usleep(1000);
  CHECK_TRUE(coir::account::stacks.used() <= charged + coir::kBlockingStackBytes * coir::kStackInflation);
  LONGS_EQUAL(0, wrong);
}

TEST(Blocking, without_room_for_a_thread_it_is_refused_and_nothing_is_left) {
  for (int i = 0; i < 5000 && count_threads() > kThreadsAtStart; ++i) usleep(1000);
  CHECK_TRUE(run_until_idle({.workers = 1}, [&] {
               coir::account::stacks.set_ceiling(1024);
               const auto refused = blocking([] { return 1; });
               coir::account::stacks.set_ceiling(SIZE_MAX);
               expect(!refused && refused.error() == ErrorCode::limit);
               expect(blocking([] { return 1; }).has_value());
             }).has_value());
  LONGS_EQUAL(0, wrong);
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
               while (!stop.wanted()) usleep(200);
             }).has_value());
      ++ended;
    });
    while (begun != 2) expect(coir::sleep(1ms).has_value());
    owned.detach();
    borrowed.detach();
    coir::shutdown();
    // What the fibers refer to is main's: it waits without parking, for it is cancelled too.
    while (ended != 2) coir::yield();
    gate.open();
    await(passed, 1);
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
