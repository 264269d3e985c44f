#include <CppUTest/TestHarness.h>
#include <coir/channel.h>
#include <coir/fiber.h>
#include <coir/inspect.h>
#include <coir/mutex.h>
#include <coir/runtime.h>
#include <coir/trace.h>
#include <signal.h>
#include <string.h>

#include <atomic>

#include "core/src/inspect/backtrace.h"
#include "core/src/schedule/scheduler.h"
#include "tests/support/child.h"
#include "tests/support/everywhere.h"
#include "tests/support/scale.h"
#include "tests/support/until.h"

namespace inspect_test {

using coir::Backtrace;
using coir::Channel;
using coir::Deadline;
using coir::ErrorCode;
using coir::Fiber;
using coir::FiberInfo;
using coir::FiberState;
using coir::inspect;
using coir::spawn;
using coir::test::ChildEnd;
using coir::test::in_child;
using coir::test::until_parked;
using namespace std::chrono_literals;

namespace {

std::uintptr_t address_of(void (*function)(Channel<int>&)) {
  return reinterpret_cast<std::uintptr_t>(function);
}

volatile std::atomic<int> steps;  // written after each call, so that none is a tail call

// Their order in memory tells which of them an address lies in.
[[gnu::noinline]] void inner_wait(Channel<int>& channel) {
  static_cast<void>(channel.receive());
  steps = 1;
}
[[gnu::noinline]] void outer_wait(Channel<int>& channel) {
  inner_wait(channel);
  steps = 1;
}

// calls tells whether `trace` returns to somewhere in `function`, from its entry on and within 512 bytes.
bool calls(const Backtrace& trace, void (*function)(Channel<int>&), std::size_t& at) {
  for (; at < trace.count; ++at) {
    if (trace.pc[at] - address_of(function) < 512) return true;
  }
  return false;
}

coir::FiberControl* control_of(std::uint64_t id) {
  coir::FiberControl* found = nullptr;
  coir::Scheduler::of_process()->stacks.for_each([&](coir::FiberControl& fiber) {
    if (fiber.id.load(std::memory_order_relaxed) == id) found = &fiber;
  });
  return found;
}

}  // namespace

TEST_GROUP_BASE(Inspect, coir::test::Everywhere) {};

TEST(Inspect, a_fiber_shows_who_it_is_whose_child_and_where_it_was_spawned) {
  everywhere([&] {
    Channel<int> channel({.capacity = 1});
    const unsigned line = __LINE__ + 1;
    Fiber reader = spawn({.name = "reader", .stack = 16 * 1024}, [&] { outer_wait(channel); });
    until_parked(reader);
    const auto info = inspect(reader);
    expect(info.has_value());
    if (!info) return;
    expect(info->id == reader.id());
    expect(info->parent == coir::current().id());
    expect(strcmp(info->name, "reader") == 0);
    expect(info->where.line() == line);
    expect(strstr(info->where.file_name(), "inspect_test.cpp") != nullptr);
    expect(info->state == FiberState::parked);
    expect(strcmp(info->waits_for, "receive") == 0);
    expect(info->stack_bytes == 16 * 1024 * coir::kStackInflation);
    expect(info->stack_peak_bytes >= 256 && info->stack_peak_bytes <= info->stack_bytes);
    channel.close();
    expect(reader.join().has_value());
    const auto gone = inspect(reader);
    expect(!gone && gone.error() == ErrorCode::stale);
  });
}

TEST(Inspect, a_parked_fiber_tells_since_when) {
  everywhere([&] {
    Channel<int> channel({.capacity = 1});
    const std::int64_t began = coir::monotonic_ns();
    Fiber reader = spawn([&] { outer_wait(channel); });
    until_parked(reader);
    // The time lags by at most two ticks, and by the switches until the worker looks at its clock.
    expect(coir::sleep(80ms).has_value());
    const auto info = inspect(reader);
    const std::int64_t passed = coir::monotonic_ns() - began;
    expect(info && info->waited >= 30ms);
    expect(info && info->waited.count() <= passed + 2 * (std::int64_t{1} << 24));
    channel.close();
    expect(reader.join().has_value());
  });
}

TEST(Inspect, the_one_that_looks_is_running_and_all_are_listed) {
  everywhere([&] {
    Fiber idle[3];
    Channel<int> channel({.capacity = 1});
    for (Fiber& each : idle) each = spawn({.name = "idle"}, [&] { outer_wait(channel); });
    for (Fiber& each : idle) until_parked(each);
    FiberInfo list[8];
    expect(coir::list_fibers(list) == 4);
    int waiting = 0, running = 0;
    for (const FiberInfo& each : std::span(list).first(4)) {
      waiting += each.state == FiberState::parked && strcmp(each.name, "idle") == 0;
      running += each.state == FiberState::running && each.id == coir::current().id();
    }
    expect(waiting == 3 && running == 1);
    expect(coir::list_fibers(std::span(list).first(1)) == 4);
    channel.close();
    for (Fiber& each : idle) expect(each.join().has_value());
  });
}

TEST(Inspect, a_deep_fiber_holds_more_of_its_stack) {
  everywhere([&] {
    Channel<int> channel({.capacity = 1});
    std::size_t peak[2] = {};
    for (const bool deep : {false, true}) {
      Fiber fiber = spawn({.stack = 64 * 1024}, [&] {
        if (deep) {
          char room[24 * 1024];
          memset(room, 1, sizeof room);
          asm volatile("" : : "r"(room) : "memory");
        }
        outer_wait(channel);
      });
      until_parked(fiber);
      if (const auto info = inspect(fiber); info) peak[deep] = info->stack_peak_bytes;
      static_cast<void>(fiber.cancel());
      static_cast<void>(fiber.join());
    }
    expect(peak[1] >= 24 * 1024);
    expect(peak[0] != 0 && peak[0] <= peak[1]);
  });
}

TEST(Inspect, a_parked_fiber_shows_its_calls_from_the_innermost_to_the_first) {
  everywhere([&] {
    Channel<int> channel({.capacity = 1});
    Fiber reader = spawn([&] { outer_wait(channel); });
    until_parked(reader);
    Backtrace trace;
    // On another worker it may be a few instructions from having parked.
    coir::test::until([&] { return trace.of_parked(*control_of(reader.id())); });
    std::size_t at = 0;
    expect(trace.complete);
    expect(calls(trace, &inner_wait, at));
    expect(calls(trace, &outer_wait, at));
    expect(at + 1 < trace.count);
    channel.close();
    expect(reader.join().has_value());
  });
}

TEST(Inspect, a_fiber_that_never_ran_shows_its_start_alone) {
  CHECK_TRUE(coir::run_until_idle({.workers = 1}, [&] {
               Fiber fresh = spawn([] {});
               Backtrace trace;
               expect(trace.of_parked(*control_of(fresh.id())));
               expect(trace.count == 1);
               expect(fresh.join().has_value());
             }).has_value());
  check();
}

TEST(Inspect, backtraces_may_be_taken_while_fibers_run) {
  CHECK_TRUE(coir::run_until_idle({.workers = 2}, [&] {
               std::atomic<bool> over{false};
               Channel<int> back_and_forth({.capacity = 1});
               Fiber players[4];
               for (Fiber& each : players) {
                 each = spawn([&] {
                   while (!over) {
                     static_cast<void>(back_and_forth.send(1, Deadline::after(1ms)));
                     static_cast<void>(back_and_forth.receive(Deadline::after(1ms)));
                     coir::yield();
                   }
                 });
               }
               coir::FiberControl* controls[4];
               for (int i = 0; i < 4; ++i) controls[i] = control_of(players[i].id());
               int complete = 0;
               for (int round = 0; round < coir::test::scaled({5000, 2000, 1000, 500}); ++round) {
                 for (coir::FiberControl* each : controls) {
                   Backtrace trace;
                   complete += trace.of_parked(*each);
                   expect(trace.count <= Backtrace::kMost);
                 }
                 if (round % 16 == 0) coir::yield();
               }
               over = true;
               for (Fiber& each : players) expect(each.join().has_value());
               expect(complete > 0);
             }).has_value());
  check();
}

TEST(Inspect, a_signal_dumps_every_fiber_with_its_backtrace_even_if_none_gives_way) {
  // The thread sanitizer keeps signals back while a thread calls nothing.
  if (coir::test::kThreadSanitized) return;
  const ChildEnd end = in_child([] {
    if (!coir::dump_fibers_on(SIGQUIT)) return 9;
    return coir::run({.workers = 1}, [] {
      Channel<int> channel({.capacity = 1});
      Fiber reader = spawn({.name = "reader"}, [&] { outer_wait(channel); });
      until_parked(reader);
      raise(SIGQUIT);
      channel.close();
      static_cast<void>(reader.join());
    });
  });
  LONGS_EQUAL(0, end.status);
  CHECK_TRUE(end.wrote("coir: 2 fibers, 1 workers\n"));
  CHECK_TRUE(end.wrote("\"main\" running; spawned at "));
  CHECK_TRUE(end.wrote("\"reader\" parked waits to receive; spawned at "));
  CHECK_TRUE(end.wrote("coir:     for "));
  CHECK_TRUE(end.wrote("child of fiber "));
  CHECK_FALSE(end.wrote("no backtrace"));
  // Two lines for each fiber, the first line, and three calls of each at least.
  CHECK_TRUE(end.lines() >= 11);
}

TEST(Inspect, a_trace_is_refused_where_tracing_is_not_built_in) {
  if (coir::tracing()) return;
  const auto written = coir::write_trace(1);
  CHECK_TRUE(!written && written.error() == ErrorCode::unsupported);
}

TEST(Inspect, no_signal_is_taken_that_cannot_be) {
  const auto kill = coir::dump_fibers_on(SIGKILL);
  CHECK_TRUE(!kill);
}

}  // namespace inspect_test
