#include <coir/blocking.h>

#include <CppUTest/TestHarness.h>
#include <coir/runtime.h>
#include <sys/resource.h>

#include "tests/support/child.h"

// A program of its own: no call before these can have opened something that they would need.
namespace blocking_descriptors_test {

using coir::blocking;
using coir::test::in_child;

TEST_GROUP(BlockingDescriptors) {};

TEST(BlockingDescriptors, the_first_call_of_a_process_needs_none) {
  const auto end = in_child([] {
    return coir::run({.workers = 1}, [] {
      const rlimit none{};
      setrlimit(RLIMIT_NOFILE, &none);
      const auto sum = blocking([] { return 40 + 2; });
      return sum && *sum == 42 ? 0 : 1;
    });
  });
  LONGS_EQUAL(0, end.status);
}

// A thread's wakeup that nobody has waited for must not keep one of the next run from coming.
TEST(BlockingDescriptors, calls_of_one_run_after_the_other_wake_their_callers) {
  const auto end = in_child([] {
    for (int i = 0; i < 20; ++i) {
      const int status = coir::run({.workers = 1}, [] {
        const auto late = blocking([] { return 1; }, coir::Deadline::now());
        const auto sum = blocking([] { return 40 + 2; });
        return (late || late.error() == coir::ErrorCode::timed_out) && sum && *sum == 42 ? 0 : 1;
      });
      if (status != 0) return status;
    }
    return 0;
  });
  LONGS_EQUAL(0, end.status);
}

}  // namespace blocking_descriptors_test
