// Sleeping, timeouts and periods are the same calls on a plain thread and in a build without fibers. Fibers' own sleeps are
// in sleep_test.cpp.

#include <CppUTest/TestHarness.h>
#include <coir/cancel_scope.h>
#include <coir/every.h>
#include <coir/sleep.h>

namespace sleep_anywhere_test {

using namespace std::chrono_literals;
using coir::CancelScope;
using coir::Deadline;
using coir::Error;
using coir::ErrorCode;
using coir::monotonic_ns;
using Outcome = std::expected<void, Error>;

TEST_GROUP(SleepAnywhere) {};

TEST(SleepAnywhere, it_is_never_shorter_than_asked) {
  const std::int64_t start = monotonic_ns();
  CHECK_TRUE(coir::sleep(3ms).has_value());
  CHECK_TRUE(monotonic_ns() - start >= 3'000'000);
  const Deadline deadline = Deadline::after(2ms);
  CHECK_TRUE(coir::sleep_until(deadline).has_value());
  CHECK_TRUE(deadline.passed());
}

TEST(SleepAnywhere, deadlines_past_and_below_zero_return_at_once) {
  for (const auto span : {0ns, -1ns, std::chrono::nanoseconds(-5'000'000'000)})
    CHECK_TRUE(coir::sleep(span).has_value());
  for (const auto deadline : {Deadline::now(), Deadline::at_ns(1), Deadline::at_ns(-1)}) {
    CHECK_TRUE(coir::sleep_until(deadline).has_value());
  }
}

TEST(SleepAnywhere, a_sleep_that_nothing_can_end_is_invalid) {
  const auto slept = coir::sleep_until(Deadline::never());
  CHECK_TRUE(!slept && slept.error() == ErrorCode::invalid);
}

TEST(SleepAnywhere, the_deadline_of_a_scope_ends_it_and_the_error_tells_whose) {
  CancelScope outer(Deadline::after(2ms));
  const CancelScope inner(Deadline::after(1h));
  const auto slept = coir::sleep(1h);
  CHECK_TRUE(!slept && slept.error() == ErrorCode::timed_out && outer.caused(slept.error()));
  CHECK_FALSE(coir::cancelled());
}

TEST(SleepAnywhere, in_a_cancelled_scope_it_fails_at_once) {
  CancelScope scope;
  scope.cancel("over");
  CHECK_TRUE(coir::cancelled());
  const auto slept = coir::sleep(1h);
  CHECK_TRUE(!slept && slept.error() == ErrorCode::cancelled && scope.caused(slept.error()));
}

TEST(SleepAnywhere, with_timeout_bounds_it) {
  const auto late = coir::with_timeout(1ms, [] { return coir::sleep(1h); });
  CHECK_TRUE(!late && late.error() == ErrorCode::timed_out && late.error().scope == 0);
  CHECK_TRUE(coir::with_timeout(1h, [] { return coir::sleep(1ms); }).has_value());
}

TEST(SleepAnywhere, every_runs_its_job_until_a_scope_ends_it) {
  int runs = 0;
  const auto outcome = coir::with_timeout(1h, [&] {
    CancelScope scope;
    return coir::every(1ms, [&] {
      if (++runs == 3) scope.cancel("enough");
    });
  });
  CHECK_TRUE(!outcome && outcome.error() == ErrorCode::cancelled);
  LONGS_EQUAL(3, runs);
}

TEST(SleepAnywhere, back_off_is_a_loop_of_sleeps) {
  int attempts = 0;
  const auto outcome = [&]() -> Outcome {
    for (auto pause = 1ms;; pause *= 2) {
      if (++attempts == 4) return {};
      if (auto slept = coir::sleep(pause); !slept) return slept;
    }
  }();
  CHECK_TRUE(outcome.has_value());
  LONGS_EQUAL(4, attempts);
}

}  // namespace sleep_anywhere_test
