#include <CppUTest/TestHarness.h>
#include <coir/atomic.h>
#include <coir/blocking.h>
#include <coir/fiber.h>
#include <coir/runtime.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/src/schedule/scheduler.h"
#include "core/src/wait/park.h"
#include "tests/support/child.h"
#include "tests/support/without_syscall.h"

namespace environment_test {

using coir::kManyWorkers;
using coir::spawn;
using coir::test::ChildEnd;
using coir::test::in_child;

namespace {

// run_with runs a program in an environment with one variable set; its status is 100 plus what the body returns.
template <class Body>
ChildEnd run_with(const char* name, const char* value, Body body, const coir::RunOptions& options = {}) {
  return in_child([&] {
    setenv(name, value, 1);
    return coir::run(options, [&] { return 100 + body(); });
  });
}

int workers() {
  return static_cast<int>(coir::stats().workers);
}
int stack_kb() {
  int kb = 0;
  static_cast<void>(spawn([&] { kb = 8 << coir::running_fiber()->stack_class; }).join());
  return kb;
}

void bad_value(const char* name, const char* value) {
  const ChildEnd end = run_with(name, value, [] { return 0; });
  LONGS_EQUAL(2, end.status);
  LONGS_EQUAL(1, end.lines());
  CHECK_TRUE(end.wrote(name));
  CHECK_TRUE(end.wrote(value));
}

}  // namespace

TEST_GROUP(Environment) {};

TEST(Environment, the_number_of_workers_is_read) {
  if (!kManyWorkers) return;
  LONGS_EQUAL(103, run_with("COIR_WORKERS", "3", workers).status);
  LONGS_EQUAL(101, run_with("COIR_WORKERS", "1", workers).status);
}

TEST(Environment, the_default_stack_is_read_and_rounded_up_to_a_class) {
  LONGS_EQUAL(108, run_with("COIR_STACK_KB", "8", stack_kb).status);
  LONGS_EQUAL(132, run_with("COIR_STACK_KB", "17", stack_kb).status);
  LONGS_EQUAL(164, run_with("COIR_STACK_KB", "64", stack_kb).status);
}

TEST(Environment, the_programs_own_choice_goes_before_it) {
  if (kManyWorkers) LONGS_EQUAL(102, run_with("COIR_WORKERS", "3", workers, {.workers = 2}).status);
  LONGS_EQUAL(132, run_with("COIR_STACK_KB", "64", stack_kb, {.default_stack = 32 * 1024}).status);
}

TEST(Environment, a_bad_number_of_workers_is_one_line_and_exit_2) {
  for (const char* value : {"0", "33", "-1", "many", "2x", " 2", "99999999999999999999"})
    bad_value("COIR_WORKERS", value);
}

TEST(Environment, a_bad_stack_size_is_one_line_and_exit_2) {
  for (const char* value : {"7", "65", "0", "-8", "16K", "8.5", "18446744073709551617"})
    bad_value("COIR_STACK_KB", value);
}

TEST(Environment, a_bad_seed_is_one_line_and_exit_2) {
  for (const char* value : {"x", "-1", "1.5"}) bad_value("COIR_SEED", value);
}

TEST(Environment, an_empty_value_is_a_bad_one) {
  const ChildEnd end = run_with("COIR_WORKERS", "", [] { return 0; });
  LONGS_EQUAL(2, end.status);
  LONGS_EQUAL(1, end.lines());
  CHECK_TRUE(end.wrote("COIR_WORKERS"));
}

TEST(Environment, a_bad_value_is_told_even_where_the_program_chose) {
  LONGS_EQUAL(2, run_with("COIR_WORKERS", "x", [] { return 0; }, {.workers = 1}).status);
}

TEST_GROUP(DebugLine) {
  // told runs a program with COIR_DEBUG as given and returns what it wrote.
  template <class Body>
  ChildEnd told(const char* value, Body body) {
    return in_child([&] {
      if (value != nullptr) setenv("COIR_DEBUG", value, 1);
      return body();
    });
  }
  static constexpr const char* kPpoll = "coir: debug: this kernel has no epoll: descriptors are polled by ppoll\n";
};

TEST(DebugLine, a_fallback_is_one_line_and_none_without_the_wish) {
  const auto twice_by_ppoll = [] {
    for (int i = 0; i < 2; ++i) static_cast<void>(coir::run_until_idle({.force_ppoll = true}, [] {}));
    return 0;
  };
  const ChildEnd wished = told("1", twice_by_ppoll);
  const char* const first = strstr(wished.output, kPpoll);
  CHECK_TRUE(first != nullptr);
  CHECK_TRUE(first != nullptr && strstr(first + strlen(kPpoll), "ppoll") == nullptr);
  STRCMP_EQUAL("", told("0", twice_by_ppoll).output);
  STRCMP_EQUAL("", told(nullptr, twice_by_ppoll).output);
  // Behind the filter of system/vendor_kernel there is no epoll.
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  CHECK_EQUAL(epoll < 0, told("1", [] { return coir::run({}, [] {}); }).wrote(kPpoll));
  if (epoll >= 0) close(epoll);
}

TEST(DebugLine, a_kernel_without_epoll_is_told_of) {
  const ChildEnd end = told("1", [] {
    if (!coir::test::forget_syscall(SYS_epoll_create1)) return 77;
    return coir::run({}, [] {});
  });
  if (end.status == 77) return;
  CHECK_TRUE(end.wrote(kPpoll));
}

TEST(DebugLine, stacks_without_guards_of_their_own_are_told_of) {
  const ChildEnd end = told("1", [] {
    return coir::run({.workers = 1}, [] {
      coir::Scheduler::of_process()->stacks.arena(0).guard_by(coir::GuardMode::protect, 0);
      coir::Fiber sleepers[3];
      for (coir::Fiber& each : sleepers) each = spawn({.stack = 8 * 1024}, [] { coir::yield(); });
      for (coir::Fiber& each : sleepers) static_cast<void>(each.join());
    });
  });
  LONGS_EQUAL(0, end.status);
  CHECK_TRUE(end.wrote("coir: debug: mappings are short: further stacks have a guard for each group"));
}

TEST(DebugLine, a_call_that_blocks_outside_a_fiber_is_told_of) {
  const auto outside = [] {
    for (int i = 0; i < 3; ++i) static_cast<void>(coir::blocking([] {}));
    return 0;
  };
  const ChildEnd end = told("1", outside);
  STRCMP_EQUAL("coir: debug: a call that waits was made outside a fiber: it blocks its thread\n", end.output);
  STRCMP_EQUAL("", told(nullptr, outside).output);
  CHECK_FALSE(told("1", [] {
                return coir::run({}, [] { static_cast<void>(coir::blocking([] {})); });
              }).wrote("outside a fiber"));
}

TEST(DebugLine, a_bad_wish_is_one_line_and_exit_2) {
  for (const char* value : {"yes", "2", ""}) bad_value("COIR_DEBUG", value);
}

}  // namespace environment_test
