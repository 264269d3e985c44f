#include <CppUTest/TestHarness.h>
#include <coir/atomic.h>
#include <coir/fiber.h>
#include <coir/inspect.h>
#include <coir/runtime.h>
#include <coir/wait.h>
#include <dirent.h>
#include <pthread.h>
#include <stdlib.h>

#include <atomic>
#include <cstring>

#include "tests/support/child.h"
#include "tests/support/pipe.h"
#include "tests/support/scale.h"

namespace runtime_test {

using coir::Deadline;
using coir::Direction;
using coir::ErrorCode;
using coir::Fiber;
using coir::kManyWorkers;
using coir::run_until_idle;
using coir::RuntimeStats;
using coir::spawn;
using coir::test::ChildEnd;
using coir::test::count_fds;
using coir::test::in_child;
using coir::test::Pipe;
using coir::test::scaled;
using namespace std::chrono_literals;

namespace {

int count_entries(const char* directory) {
  int count = 0;
  DIR* const open = opendir(directory);
  if (open == nullptr) return 0;
  while (readdir(open) != nullptr) ++count;
  closedir(open);
  return count;
}

}  // namespace

TEST_GROUP(Runtime) {};

TEST(Runtime, returns_when_the_last_detached_fiber_has_ended) {
  for (const unsigned workers : {1u, 2u, 5u}) {
    std::atomic<int> ended_fibers{0};
    const auto ended = run_until_idle({.workers = workers}, [&] {
      for (int i = 0; i < 50; ++i) {
        spawn([&ended_fibers, i] {
          static_cast<void>(coir::sleep(std::chrono::microseconds(i * 100)));
          spawn([&ended_fibers] { ++ended_fibers; }).detach();
          ++ended_fibers;
        }).detach();
      }
    });
    CHECK_TRUE(ended.has_value());
    LONGS_EQUAL(100, ended_fibers);
  }
}

TEST(Runtime, one_at_a_time_in_a_process) {
  bool busy = false;
  const auto ended = run_until_idle({.workers = 1}, [&] {
    const auto inner = run_until_idle({.workers = 1}, [] {});
    busy = !inner && inner.error() == ErrorCode::busy;
  });
  CHECK_TRUE(ended.has_value());
  CHECK_TRUE(busy);
}

TEST(Runtime, the_exit_status_is_the_bodys) {
  LONGS_EQUAL(0, coir::run([] {}));
  LONGS_EQUAL(5, coir::run({.workers = 1}, [] { return 5; }));
  LONGS_EQUAL(0, coir::run({.workers = 2}, [] { return 0; }));
}

TEST(Runtime, runs_one_after_the_other_leave_nothing_behind) {
  static_cast<void>(run_until_idle({.workers = 2}, [] {}));
  const int fds = count_fds(), threads = count_entries("/proc/self/task");
  for (int i = 0; i < scaled({200, 100, 50, 30}); ++i) {
    const auto ended = run_until_idle({.workers = 3, .force_ppoll = i % 2 == 0}, [] {
      Pipe pipe;
      Fiber fibers[20];
      for (Fiber& each : fibers) each = spawn([] { static_cast<void>(coir::sleep(10us)); });
      static_cast<void>(coir::wait(pipe.reader, Direction::readable, Deadline::after(100us)));
      for (Fiber& each : fibers) static_cast<void>(each.join());
    });
    CHECK_TRUE(ended.has_value());
  }
  LONGS_EQUAL(fds, count_fds());
  LONGS_EQUAL(threads, count_entries("/proc/self/task"));
}

TEST(Runtime, shutdown_cancels_every_wait_and_drains) {
  for (const unsigned workers : {1u, 2u}) {
    std::atomic<int> cancelled{0}, cleaned{0};
    const auto ended = run_until_idle({.workers = workers}, [&] {
      Pipe pipe(Pipe::Kind::sockets);
      Fiber target = spawn([&] {
        while (cleaned < 30) coir::yield();
      });
      Fiber fibers[30];
      for (int i = 0; i < 30; ++i) {
        fibers[i] = spawn([&, i] {
          if (i == 0) cancelled += !coir::wait(pipe.reader, Direction::readable);
          if (i == 1) cancelled += !target.join();
          if (i > 1) cancelled += !coir::sleep(24h);
          // Cleanup runs, and may yield.
          coir::yield();
          ++cleaned;
        });
      }
      coir::yield();
      coir::shutdown();
      coir::shutdown();
      while (cleaned < 30) coir::yield();
    });
    CHECK_TRUE(ended.has_value());
    LONGS_EQUAL(30, cancelled);
    LONGS_EQUAL(30, cleaned);
  }
}

TEST(Runtime, a_fiber_spawned_after_a_shutdown_runs_and_its_waits_fail) {
  std::atomic<int> ran{0}, cancelled{0};
  const auto ended = run_until_idle({.workers = 2}, [&] {
    coir::shutdown();
    for (int i = 0; i < 10; ++i) {
      spawn([&] {
        ++ran;
        cancelled += !coir::sleep(24h) && coir::cancelled();
      }).detach();
    }
  });
  CHECK_TRUE(ended.has_value());
  LONGS_EQUAL(10, ran);
  LONGS_EQUAL(10, cancelled);
  // The next run is not shut down.
  bool slept = false;
  CHECK_TRUE(run_until_idle({.workers = 1}, [&] { slept = coir::sleep(1ms).has_value(); }).has_value());
  CHECK_TRUE(slept);
}

// Fibers spawn, park and end on all workers while the shutdown goes over them.
TEST(Runtime, a_shutdown_in_the_midst_of_work_always_ends) {
  for (int round = 0; round < scaled({300, 100, 60, 40}); ++round) {
    const auto ended = run_until_idle({.workers = 3, .hot_stacks = 4}, [&] {
      for (int i = 0; i < 8; ++i) {
        spawn([] {
          while (!coir::cancelled()) {
            Fiber child = spawn([] { static_cast<void>(coir::sleep(24h)); });
            coir::yield();
            static_cast<void>(child.cancel());
            static_cast<void>(child.join());
          }
        }).detach();
      }
      static_cast<void>(coir::sleep(std::chrono::microseconds(round * 7)));
      coir::shutdown();
    });
    CHECK_TRUE(ended.has_value());
  }
}

TEST(Runtime, stats_are_zero_when_none_runs_and_count_when_one_does) {
  CHECK_TRUE(coir::stats().workers == 0 && coir::stats().fibers_spawned == 0);
  RuntimeStats at_work{}, at_end{};
  const auto ended = run_until_idle({.workers = 2}, [&] {
    Pipe pipe;
    Fiber fibers[10];
    for (Fiber& each : fibers) each = spawn([] { static_cast<void>(coir::sleep(24h)); });
    Fiber reader = spawn([&] { static_cast<void>(coir::wait(pipe.reader, Direction::readable)); });
    while (coir::stats().timers_armed < 10 || coir::stats().fd_waits < 1) coir::yield();
    at_work = coir::stats();
    pipe.put();
    static_cast<void>(reader.join());
    for (Fiber& each : fibers) {
      static_cast<void>(each.cancel());
      static_cast<void>(each.join());
    }
    at_end = coir::stats();
  });
  CHECK_TRUE(ended.has_value());
  LONGS_EQUAL(kManyWorkers ? 2 : 1, at_work.workers);
  LONGS_EQUAL(12, at_work.fibers_alive);
  LONGS_EQUAL(12, at_work.fibers_spawned);
  LONGS_EQUAL(10, at_work.timers_armed);
  LONGS_EQUAL(1, at_work.fd_waits);
  LONGS_EQUAL(1, at_end.fibers_alive);
  LONGS_EQUAL(0, at_end.timers_armed);
  LONGS_EQUAL(0, at_end.fd_waits);
  CHECK_TRUE(at_end.switches > at_work.switches);
  CHECK_TRUE(at_end.stacks_used >= 12);
  CHECK_TRUE(at_end.stacks_guarded == at_end.stacks_used || std::strcmp(at_end.guard_mode, "group") == 0);
  CHECK_TRUE(at_end.stacks_pooled >= 5);  // an idle second lets half of them go
}

// A peak on two workers, after which one of them sleeps for good.
TEST(Runtime, a_peaks_spare_stacks_are_freed_though_its_worker_sleeps) {
  std::uint64_t most = 0, at_rest = 0;
  const auto ended = run_until_idle({.workers = 2, .hot_stacks = 16}, [&] {
    std::atomic<int> together{0};
    Fiber peaks[2];
    for (Fiber& peak : peaks) {
      peak = spawn([&] {
        ++together;
        while (kManyWorkers && together < 2) {
        }
        Fiber children[40];
        for (Fiber& child : children) child = spawn([] { coir::yield(); });
        for (Fiber& child : children) static_cast<void>(child.join());
      });
    }
    for (Fiber& peak : peaks) static_cast<void>(peak.join());
    most = coir::stats().stacks_pooled;
    for (int left = 300; (at_rest = coir::stats().stacks_pooled) > 8 && left > 0; --left) {
      static_cast<void>(coir::sleep(100ms));
    }
  });
  CHECK_TRUE(ended.has_value());
  CHECK_TRUE(most > 8);
  CHECK_TRUE(at_rest <= 8);
}

constexpr int kNamedLine = __LINE__ + 4;
TEST(Runtime, a_dump_names_every_fiber_its_state_and_its_place) {
  const ChildEnd end = in_child([] {
    return coir::run({.workers = 1}, [] {
      Fiber named = spawn({.name = "somebody"}, [] { static_cast<void>(coir::sleep(24h)); });
      Fiber fresh = spawn({.name = "newcomer"}, [] {});
      static_cast<void>(fresh.join());
      Fiber ready = spawn({.name = "starter"}, [] {});
      coir::dump_fibers(2);
      static_cast<void>(named.cancel());
    });
  });
  LONGS_EQUAL(0, end.status);
  CHECK_TRUE(end.wrote("\"main\" running"));
  CHECK_TRUE(end.wrote("\"somebody\" parked sleeps; spawned at "));
  CHECK_TRUE(end.wrote(StringFromFormat("runtime_test.cpp:%d\n", kNamedLine).asCharString()));
  CHECK_TRUE(end.wrote("\"starter\" runnable;"));
}

namespace {

struct Onlooker {
  std::atomic<bool> over{false};
  static void* look(void* self) {
    const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    while (!static_cast<Onlooker*>(self)->over) {
      static_cast<void>(coir::stats());
      coir::dump_fibers(null);
    }
    close(null);
    return nullptr;
  }
};

}  // namespace

TEST(Runtime, any_thread_may_look_while_fibers_come_and_go) {
  if (!kManyWorkers) return;
  Onlooker onlooker;
  const auto ended = run_until_idle({.workers = 2, .hot_stacks = 2}, [&] {
    pthread_t thread;
    pthread_create(&thread, nullptr, Onlooker::look, &onlooker);
    for (int i = 0; i < scaled({3'000, 1'000, 500, 300}); ++i) {
      Fiber fibers[5];
      for (Fiber& each : fibers) each = spawn([] { static_cast<void>(coir::sleep(1us)); });
      coir::yield();
      for (Fiber& each : fibers) {
        static_cast<void>(each.cancel());
        static_cast<void>(each.join());
      }
    }
    onlooker.over = true;
    pthread_join(thread, nullptr);
  });
  CHECK_TRUE(ended.has_value());
}

}  // namespace runtime_test
