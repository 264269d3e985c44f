// LifeWatch tells whether the workers switch and the groups report, and names first those that do not.

#include <CppUTest/TestHarness.h>
#include <coir/fiber.h>
#include <coir/heartbeat.h>
#include <coir/life_watch.h>
#include <coir/runtime.h>
#include <coir/sleep.h>
#include <coir/worker_stack.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <atomic>
#include <string_view>

#include "tests/support/child.h"
#include "tests/support/until.h"

namespace life_watch_test {

using coir::Heartbeat;
using coir::LifeWatch;
using coir::spawn;
using coir::test::ChildEnd;
using coir::test::in_child;
using coir::test::until;
using namespace std::chrono_literals;

namespace {

constexpr std::chrono::milliseconds kPatience = 200ms;

// Seen is what the watch has said; each change is a line on standard error, among those that name.
struct Seen {
  std::atomic<int> looks{0}, alive_looks{0};
  std::atomic<bool> alive{true};
  int wake = -1;  // written to when it is not alive
  bool quiet = false;

  LifeWatch::Turn look(bool now_alive) noexcept {
    if (now_alive != alive.exchange(now_alive) && !quiet) fprintf(stderr, now_alive ? "alive\n" : "not alive\n");
    if (!now_alive && wake >= 0) {
      [[maybe_unused]] const ssize_t n = write(wake, "", 1);
    }
    if (now_alive) ++alive_looks;
    ++looks;
    return {.pause = 20ms, .patience = kPatience};
  }
  void start() {
    if (!LifeWatch::start(kPatience, [this](bool now_alive) { return look(now_alive); })) _exit(3);
  }
};

// named_first tells whether the child wrote `text`, and only then that it was not alive; and at last that it was.
bool named_first(const ChildEnd& end, const char* text) {
  const char* const named = strstr(end.output, text);
  const char* const dead = strstr(end.output, "not alive\n");
  const char* const again = dead != nullptr ? strstr(dead + 4, "\nalive\n") : nullptr;
  return end.status == 0 && named != nullptr && dead != nullptr && named < dead && again != nullptr;
}

int wait_until_alive_again(Seen& seen) {
  until([&] { return seen.alive.load(); });
  LifeWatch::stop();
  return 0;
}

// hog_until_told computes until the watch has said that this is no life. noinline: it is a call of the backtrace.
[[gnu::noinline]] void hog_until_told(const Seen& seen) {
  while (seen.alive.load()) {
  }
}

}  // namespace

TEST_GROUP(LifeWatch) {};

TEST(LifeWatch, a_fiber_that_computes_is_named_with_its_calls_before_the_program_hears_that_it_is_not_alive) {
  const ChildEnd end = in_child([] {
    Seen seen;
    return coir::run({.workers = 1}, [&] {
      // It is started by the hog, so that no other fiber can be the first that is named.
      const auto hog = [&] {
        seen.start();
        hog_until_told(seen);
      };
      static_cast<void>(spawn({.name = "hog"}, hog).join());
      wait_until_alive_again(seen);
    });
  });
  CHECK_TRUE(named_first(end, "\"hog\" keeps worker 0 for "));
  CHECK_TRUE(end.wrote("; spawned at "));
  CHECK_TRUE(end.wrote("\ncoir:     0x"));
}

TEST(LifeWatch, a_fiber_that_blocks_its_worker_in_the_kernel_is_named_as_such) {
  const ChildEnd end = in_child([] {
    int ends[2];
    if (pipe(ends) != 0) return 1;
    Seen seen;
    seen.wake = ends[1];
    return coir::run({.workers = 1}, [&] {
      const auto body = [&] {
        seen.start();
        char byte;
        [[maybe_unused]] const ssize_t n = read(ends[0], &byte, 1);
      };
      static_cast<void>(spawn({.name = "sleeper"}, body).join());
      wait_until_alive_again(seen);
    });
  });
  CHECK_TRUE(named_first(end, "\"sleeper\" blocks worker 0 for "));
}

TEST(LifeWatch, a_fiber_in_a_call_on_the_workers_stack_is_named_too) {
  const ChildEnd end = in_child([] {
    Seen seen;
    return coir::run({.workers = 1}, [&] {
      const auto deep = [&] {
        seen.start();
        coir::on_worker_stack([&] { hog_until_told(seen); });
      };
      static_cast<void>(spawn({.name = "deep"}, deep).join());
      wait_until_alive_again(seen);
    });
  });
  CHECK_TRUE(named_first(end, "\"deep\" keeps worker 0 for "));
  CHECK_TRUE(end.wrote("\ncoir:     0x"));
}

TEST(LifeWatch, a_group_that_does_not_report_is_named_once_until_it_does) {
  const ChildEnd end = in_child([] {
    Seen seen;
    Heartbeat silent("silent group", 100ms);
    seen.start();
    until([&] { return !seen.alive.load(); });
    const int looks = seen.looks.load();
    until([&] { return seen.looks.load() >= looks + 3; });
    silent.promise(1h);
    silent.report();
    return wait_until_alive_again(seen);
  });
  CHECK_TRUE(named_first(end, "\"silent group\" has not reported for "));
  LONGS_EQUAL(3, end.lines());
}

TEST(LifeWatch, of_several_groups_each_that_is_late_is_named) {
  const ChildEnd end = in_child([] {
    Seen seen;
    {
      Heartbeat first("first", 1ms), well("well", 1h), last("last", 1ms);
      seen.start();
      until([&] { return !seen.alive.load(); });
      const int looks = seen.looks.load();
      until([&] { return seen.looks.load() >= looks + 2; });
    }
    return wait_until_alive_again(seen);
  });
  CHECK_TRUE(named_first(end, "\"first\" has not reported"));
  CHECK_TRUE(end.wrote("\"last\" has not reported"));
  CHECK_FALSE(end.wrote("\"well\""));
}

TEST(LifeWatch, a_program_takes_the_names_in_place_of_standard_error_before_it_hears_that_it_is_not_alive) {
  const ChildEnd end = in_child([] {
    Seen seen;
    return coir::run({.workers = 1}, [&] {
      Heartbeat silent("silent group", 1ms);
      const auto look = [&](bool now_alive) { return seen.look(now_alive); };
      const auto tell = [](std::string_view text) {
        fprintf(stderr, "told <%.*s>\n", static_cast<int>(text.size()), text.data());
      };
      static_cast<void>(spawn({.name = "hog"}, [&] {
                          if (!LifeWatch::start(kPatience, look, tell)) _exit(3);
                          until([&] { return !seen.alive.load(); });
                          const int looks = seen.looks.load();
                          while (seen.looks.load() < looks + 20) {
                          }
                        }).join());
      silent.promise(1h);
      silent.report();
      wait_until_alive_again(seen);
    });
  });
  CHECK_TRUE(named_first(end, "told <\"silent group\" has not reported for "));
  CHECK_TRUE(end.wrote(" s>\n"));
  CHECK_TRUE(end.wrote("told <fiber "));
  CHECK_TRUE(end.wrote("\"hog\" keeps worker 0 for "));
  CHECK_TRUE(end.wrote(">\n"));
  CHECK_FALSE(end.wrote("coir: fiber "));
  CHECK_FALSE(end.wrote("coir: \"silent"));
}

TEST(LifeWatch, it_never_waits_for_the_reader_of_its_lines) {
  const ChildEnd end = in_child([] {
    // Standard error is a pipe that is full.
    int ends[2];
    if (pipe(ends) != 0) return 1;
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    while (write(ends[1], "", 1) == 1) {
    }
    fcntl(ends[1], F_SETFL, 0);
    dup2(ends[1], STDERR_FILENO);
    Seen seen;
    seen.quiet = true;
    return coir::run({.workers = 1}, [&] {
      Heartbeat silent("silent", 1ms);
      static_cast<void>(spawn({.name = "hog"}, [&] {
                          seen.start();
                          hog_until_told(seen);
                        }).join());
      until([&] { return seen.looks.load() > 20; });  // the hog is named by now too
      silent.promise(1h);
      silent.report();
      wait_until_alive_again(seen);
    });
  });
  LONGS_EQUAL(0, end.status);
}

TEST(LifeWatch, parked_fibers_and_idle_workers_are_alive) {
  const ChildEnd end = in_child([] {
    Seen seen;
    return coir::run([&] {
      seen.start();
      coir::Fiber parked = spawn({.name = "parked"}, [] { static_cast<void>(coir::sleep(1h)); });
      until([&] { return seen.looks.load() >= 20; });
      LifeWatch::stop();
      static_cast<void>(parked.cancel());
      // A look may find a worker that the load of the machine keeps from running.
      return seen.alive_looks.load() > 0 ? 0 : 1;
    });
  });
  LONGS_EQUAL(0, end.status);
}

TEST(LifeWatch, it_can_be_started_again_and_stopped_twice) {
  const ChildEnd end = in_child([] {
    LifeWatch::stop();
    for (int i = 0; i < 2; ++i) {
      Seen seen;
      seen.start();
      until([&] { return seen.alive_looks.load() > 0; });
      LifeWatch::stop();
      LifeWatch::stop();
    }
    return 0;
  });
  LONGS_EQUAL(0, end.status);
  LONGS_EQUAL(0, end.lines());
}

}  // namespace life_watch_test
