#include <CppUTest/TestHarness.h>
#include <coir/atomic.h>
#include <coir/fiber.h>
#include <coir/runtime.h>
#include <coir/wait.h>
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "tests/support/pipe.h"
#include "tests/support/scale.h"

namespace migrate_test {

using coir::Fiber;
using coir::kManyWorkers;
using coir::run_until_idle;
using coir::spawn;
using coir::test::Pipe;
using coir::test::scaled;
using namespace std::chrono_literals;

namespace {

// An address of a thread-local variable that is kept across a wait is another thread's after it: nothing here may be
// inlined.
thread_local long t_thread = 0;

[[gnu::noinline]] long this_thread() {
  asm volatile("");
  if (t_thread == 0) t_thread = syscall(SYS_gettid);
  return t_thread;
}

[[gnu::noinline]] void set_errno(int number) {
  asm volatile("");
  errno = number;
}

}  // namespace

TEST_GROUP(Migrate) {};

TEST(Migrate, every_wakeup_is_on_another_thread_than_the_wait) {
  if (!kManyWorkers) return;
  for (const unsigned workers : {2u, 3u}) {
    std::atomic<int> stayed{0}, failed{0};
    const auto ended = run_until_idle({.workers = workers, .migrate = true}, [&] {
      Fiber fibers[4];
      for (Fiber& each : fibers) {
        each = spawn([&] {
          Pipe pipe;
          for (int i = 0; i < scaled({60, 40, 40, 20}); ++i) {
            long before = this_thread();
            failed += !coir::sleep(1500us);
            stayed += this_thread() == before;

            Fiber child = spawn([] { static_cast<void>(coir::sleep(1ms)); });
            before = this_thread();
            failed += !child.join();
            stayed += this_thread() == before;

            Fiber writer = spawn([&pipe] {
              static_cast<void>(coir::sleep(1ms));
              pipe.put();
            });
            before = this_thread();
            failed += !coir::wait(pipe.reader, coir::Direction::readable);
            // The edge may have been there already, and the wait not have parked.
            if (this_thread() != before) pipe.drain();
            failed += !writer.join();
            pipe.drain();
          }
        });
      }
      for (Fiber& each : fibers) failed += !each.join();
    });
    CHECK_TRUE(ended.has_value());
    LONGS_EQUAL(0, failed);
    // A child that has ended before the join asks costs no wait; a sleep always does.
    CHECK_TRUE(stayed <= 4 * scaled({60, 40, 40, 20}) / 2);
  }
}

TEST(Migrate, a_sleep_always_moves) {
  if (!kManyWorkers) return;
  std::atomic<int> stayed{0};
  const auto ended = run_until_idle({.workers = 2, .migrate = true}, [&] {
    for (int i = 0; i < 4; ++i) {
      spawn([&] {
        for (int k = 0; k < scaled({200, 100, 100, 60}); ++k) {
          const long before = this_thread();
          static_cast<void>(coir::sleep(1500us));
          stayed += this_thread() == before;
        }
      }).detach();
    }
  });
  CHECK_TRUE(ended.has_value());
  // One whose time is over before it begins, on a busy machine, does not wait.
  CHECK_TRUE(stayed <= 4 * scaled({200, 100, 100, 60}) / 10);
}

// The runtime's own calls must not trust an address of errno, or of the worker, from before a wait.
TEST(Migrate, thread_locals_are_those_of_the_thread_that_runs) {
  std::atomic<int> wrong{0};
  const auto ended = run_until_idle({.workers = 3, .migrate = true}, [&] {
    for (int i = 0; i < 8; ++i) {
      spawn([&, i] {
        Pipe pipe;
        const coir::FiberRef self = coir::current();
        for (int k = 0; k < scaled({100, 60, 60, 30}); ++k) {
          set_errno(1'000 + i);
          static_cast<void>(coir::sleep(1ms));
          wrong += coir::current() != self;
          char byte;
          wrong += read(pipe.reader, &byte, 1) != -1 || errno != EAGAIN;
          static_cast<void>(coir::wait(pipe.reader, coir::Direction::readable, coir::Deadline::after(1us)));
          wrong += coir::current() != self;
          wrong += read(-1, &byte, 1) != -1 || errno != EBADF;
        }
      }).detach();
    }
  });
  CHECK_TRUE(ended.has_value());
  LONGS_EQUAL(0, wrong);
}

}  // namespace migrate_test
