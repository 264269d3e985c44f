#include <CppUTest/TestHarness.h>
#include <coir/atomic.h>
#include <coir/fiber.h>
#include <coir/runtime.h>
#include <stdlib.h>
#include <string.h>

#include "core/src/wait/park.h"
#include "tests/support/child.h"

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

TEST_GROUP(Environment){};

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
