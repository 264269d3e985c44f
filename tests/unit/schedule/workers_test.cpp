#include <CppUTest/TestHarness.h>
#include <coir/event.h>
#include <coir/fiber.h>
#include <coir/runtime.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>

#include <atomic>

#include "tests/support/child.h"
#include "tests/support/thread.h"
#include "tests/support/until.h"

namespace workers_test {

// Workers where the kernel is short of threads, or does not tell how many there are.

namespace {

std::atomic<int> g_threads_left{1'000'000};
std::atomic<bool> g_no_proc{false};
std::atomic<int> g_looks{0};  // at how many threads there are

}  // namespace

extern "C" {
int __real_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*), void* argument);
int __wrap_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*), void* argument) {
  return --g_threads_left < 0 ? EAGAIN : __real_pthread_create(thread, attributes, body, argument);
}
int __real_stat(const char* path, struct stat* facts);
int __wrap_stat(const char* path, struct stat* facts) {
  if (strcmp(path, "/proc/self/task") != 0) return __real_stat(path, facts);
  ++g_looks;
  if (!g_no_proc) return __real_stat(path, facts);
  errno = ENOENT;
  return -1;
}
}

TEST_GROUP(Workers) {
  void teardown() override {
    g_threads_left = 1'000'000;
    g_no_proc = false;
  }
};

TEST(Workers, those_whose_threads_can_start_run_everything_and_one_line_says_so) {
  if (!coir::kManyWorkers) return;
  for (const int threads : {0, 1, 2}) {
    g_threads_left = threads;
    const auto end = coir::test::in_child([threads] {
      struct Guard {
        bool& unwound;
        ~Guard() { unwound = true; }
      };
      bool unwound = false;
      std::uint64_t workers = 0;
      std::atomic<int> ran{0};
      const auto outcome = coir::run_until_idle({.workers = 4}, [&] {
        const Guard guard{unwound};
        g_threads_left = 1'000'000;
        workers = coir::stats().workers;
        coir::Fiber fibers[20];
        for (coir::Fiber& fiber : fibers)
          fiber = coir::spawn([&] { ran += coir::sleep(std::chrono::milliseconds(1)).has_value(); });
        for (coir::Fiber& fiber : fibers) static_cast<void>(fiber.join());
      });
      return outcome && unwound && ran == 20 && workers == 1 + static_cast<unsigned>(threads) ? 0 : 1;
    });
    LONGS_EQUAL(0, end.status);
    LONGS_EQUAL(1, end.lines());
    CHECK_TRUE(end.wrote(" workers of 4: no thread can start: "));
  }
}

TEST(Workers, without_proc_a_wait_for_a_plain_thread_is_no_deadlock) {
  if (!coir::kManyWorkers) return;
  g_no_proc = true;
  coir::Event set;
  bool woken = false;
  std::atomic<bool> begun{false};
  coir::test::Thread thread([&] {
    coir::test::until([&] { return begun.load(); });
    const int before = g_looks;
    // The workers have found nothing to do, and looked.
    coir::test::until([&] { return g_looks > before + 1; });
    set.set();
  });
  const auto ran = coir::run_until_idle({.workers = 2}, [&] {
    begun = true;
    woken = set.wait().has_value();
  });
  thread.join();
  CHECK_TRUE(ran.has_value());
  CHECK_TRUE(woken);
}

}  // namespace workers_test
