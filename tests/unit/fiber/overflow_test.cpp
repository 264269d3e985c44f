#include <CppUTest/TestHarness.h>
#include <coir/config.h>
#include <coir/fiber.h>
#include <coir/runtime.h>
#include <coir/worker_stack.h>
#include <signal.h>
#include <stdio.h>

#include <initializer_list>

#include "core/src/wait/park.h"
#include "tests/support/child.h"

namespace overflow_test {

using coir::Fiber;
using coir::GuardMode;
using coir::running_fiber;
using coir::Scheduler;
using coir::spawn;
using coir::StackArena;
using coir::operator""_KiB;
using coir::test::ChildEnd;
using coir::test::in_child;

namespace {

// Each call takes a frame of its own, which is written to.
[[gnu::noinline]] int descend(int depth) {
  volatile char frame[200];
  for (volatile char& byte : frame) byte = static_cast<char>(depth);
  const int deeper = depth > 0 ? descend(depth - 1) : 0;
  return deeper + frame[depth % 200];
}

char* low_end_here() {
  coir::FiberControl* const self = running_fiber();
  return StackArena::low_end(self, coir::nominal_stack_bytes(self->stack_class) * coir::kStackInflation);
}

constexpr int kDeepLine = __LINE__ + 2;
Fiber spawn_deep(std::size_t stack) {
  return spawn({.name = "deep diver", .stack = stack}, [] { descend(1'000'000); });
}

constexpr int kScribblerLine = __LINE__ + 2;
Fiber spawn_scribbler(std::size_t stack) {
  return spawn({.name = "scribbler", .stack = stack}, [] {
    // It writes as an overflow by one frame would, where no guard stops it.
    volatile char* const low = low_end_here();
    for (int i = 1; i <= 32; ++i) low[-i] = 'x';
    coir::yield();
  });
}

void expect_report(const ChildEnd& end, const char* name, int line, int kilobytes) {
  char report[200];
  snprintf(report, sizeof report, "overflow_test.cpp:%d) overflowed its %d KB stack\n", line, kilobytes);
  CHECK_TRUE(end.wrote(report));
  snprintf(report, sizeof report, "coir: fiber %s (spawned at ", name);
  CHECK_TRUE(end.wrote(report));
}

void mine(int) {}

auto handler_of(int number) {
  struct sigaction now{};
  sigaction(number, nullptr, &now);
  return now.sa_handler;
}

}  // namespace

TEST_GROUP(Overflow) {};

TEST(Overflow, into_a_guard_is_reported_by_name_from_every_class) {
  for (const unsigned workers : {1u, 2u}) {
    for (int kilobytes = 8; kilobytes <= 64; kilobytes *= 2) {
      const ChildEnd end = in_child([&] {
        return coir::run({.workers = workers},
                         [&] { static_cast<void>(spawn_deep(static_cast<std::size_t>(kilobytes) * 1024).join()); });
      });
      CHECK_TRUE(end.signal == SIGSEGV || end.signal == SIGBUS);
      expect_report(end, "deep diver", kDeepLine, kilobytes);
      // The calls that led there follow: the innermost are one function's.
      if (kilobytes > 8) CHECK_TRUE(end.lines() > 20);
      CHECK_TRUE(end.wrote(" KB stack\ncoir:     0x"));
    }
  }
}

// The address sanitizer keeps large variables on a stack of its own.
#if !COIR_ASAN

// Below the stack lies the guard, and below that another fiber's stack: the write is to the array's own memory.
[[gnu::noinline]] int take_a_large_frame() {
  volatile char frame[8'192 * coir::kStackInflation + 5'808];
  frame[0] = 'x';
  asm volatile("" ::"r"(frame) : "memory");
  return frame[0];
}

TEST(Overflow, by_a_frame_larger_than_a_page_is_reported) {
  const ChildEnd end = in_child([] {
    return coir::run({.workers = 1}, [] {
      Fiber below = spawn({.name = "below", .stack = 8_KiB}, [] { coir::yield(); });
      Fiber above = spawn({.name = "large frame", .stack = 8_KiB}, [] { take_a_large_frame(); });
      static_cast<void>(above.join());
      static_cast<void>(below.join());
    });
  });
  CHECK_TRUE(end.signal == SIGSEGV || end.signal == SIGBUS);
  CHECK_TRUE(end.wrote("coir: fiber large frame (spawned at "));
}

#endif

TEST(Overflow, guards_by_protection_report_as_well) {
  const ChildEnd end = in_child([] {
    return coir::run({.workers = 1}, [] {
      Scheduler::of_process()->stacks.arena(0).guard_by(GuardMode::protect, 100);
      static_cast<void>(spawn_deep(8_KiB).join());
    });
  });
  CHECK_TRUE(end.signal == SIGSEGV || end.signal == SIGBUS);
  expect_report(end, "deep diver", kDeepLine, 8);
}

TEST(Overflow, without_a_guard_the_canary_tells_at_the_next_park) {
  for (std::size_t stack_class = 0; stack_class < coir::kStackClassCount; ++stack_class) {
    const ChildEnd end = in_child([&] {
      return coir::run({.workers = 1}, [&] {
        const std::size_t stack = coir::nominal_stack_bytes(stack_class);
        Scheduler::of_process()->stacks.arena(stack_class).guard_by(GuardMode::protect, 0);
        // The first of a group has a guard; main has one of class 16.
        Fiber guarded = spawn({.stack = stack}, [] { static_cast<void>(coir::sleep_until(coir::Deadline::never())); });
        static_cast<void>(spawn_scribbler(stack).join());
      });
    });
    LONGS_EQUAL(SIGABRT, end.signal);
    expect_report(end, "scribbler", kScribblerLine, 8 << stack_class);
  }
}

TEST(Overflow, a_group_still_stops_at_its_guard) {
  const ChildEnd end = in_child([] {
    return coir::run({.workers = 1}, [] {
      Scheduler::of_process()->stacks.arena(0).guard_by(GuardMode::protect, 0);
      static_cast<void>(spawn_deep(8_KiB).join());
    });
  });
  CHECK_TRUE(end.signal == SIGSEGV || end.signal == SIGBUS);
  expect_report(end, "deep diver", kDeepLine, 8);
}

TEST(Overflow, the_weakest_guard_in_use_is_told) {
  const ChildEnd end = in_child([] {
    return coir::run({.workers = 1}, [] {
      Scheduler::of_process()->stacks.arena(0).guard_by(GuardMode::protect, 0);
      Fiber sleepers[4];
      for (Fiber& each : sleepers)
        each = spawn({.stack = 8_KiB}, [] { static_cast<void>(coir::sleep_until(coir::Deadline::never())); });
      coir::yield();
      const auto stats = coir::stats();
      dprintf(2, "%s, %d without\n", stats.guard_mode, static_cast<int>(stats.stacks_used - stats.stacks_guarded));
      coir::shutdown();
    });
  });
  LONGS_EQUAL(0, end.status);
  STRCMP_EQUAL("group, 3 without\n", end.output);
}

TEST(Overflow, any_other_fault_is_left_to_its_owner) {
  const ChildEnd sent = in_child([] { return coir::run({.workers = 1}, [] { raise(SIGSEGV); }); });
  const ChildEnd met = in_child([] {
    return coir::run({.workers = 1}, [] {
      int* volatile nowhere = reinterpret_cast<int*>(64);
      *nowhere = 1;
    });
  });
  for (const ChildEnd* end : {&sent, &met}) {
    CHECK_TRUE(end->signal == SIGSEGV || end->status > 0);
    CHECK_FALSE(end->wrote("overflowed"));
  }
}

TEST(Overflow, a_run_gives_the_signal_stack_and_the_handlers_back) {
  const ChildEnd end = in_child([] {
    static char memory[65536];
    stack_t own{};
    own.ss_sp = memory;
    own.ss_size = sizeof memory;
    if (sigaltstack(&own, nullptr) != 0) return 1;
    signal(SIGBUS, mine);
    // A handler that the program sets during the run stays, too.
    if (!coir::run_until_idle({.workers = 1}, [] { signal(SIGSEGV, mine); })) return 2;
    stack_t now{};
    sigaltstack(nullptr, &now);
    if (now.ss_flags != 0 || now.ss_sp != own.ss_sp || now.ss_size != own.ss_size) return 3;
    if (handler_of(SIGSEGV) != mine) return 4;
    return handler_of(SIGBUS) == mine ? 0 : 5;
  });
  LONGS_EQUAL(0, end.status);
}

TEST(Overflow, a_signal_stack_that_the_program_has_set_during_a_run_stays) {
  const ChildEnd end = in_child([] {
    static char memory[65536];
    const auto ended = coir::run_until_idle({.workers = 1}, [] {
      stack_t own{};
      own.ss_sp = memory;
      own.ss_size = sizeof memory;
      coir::on_worker_stack([&] { sigaltstack(&own, nullptr); });
    });
    stack_t now{};
    sigaltstack(nullptr, &now);
    return ended && now.ss_sp == memory && now.ss_flags == 0 ? 0 : 1;
  });
  LONGS_EQUAL(0, end.status);
}

}  // namespace overflow_test
