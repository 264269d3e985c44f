#include <CppUTest/TestHarness.h>
#include <coir/deadline.h>

namespace deadline_test {

using coir::Deadline;
using coir::monotonic_ns;
using namespace std::chrono_literals;

TEST_GROUP(Deadline) {};

TEST(Deadline, none_given_means_never) {
  CHECK_TRUE(Deadline().is_never());
  CHECK_FALSE(Deadline().passed());
  LONGS_EQUAL(-1, Deadline::never().remaining_ms());
}

TEST(Deadline, now_has_always_passed) {
  CHECK_TRUE(Deadline::now().passed());
  LONGS_EQUAL(0, Deadline::now().remaining_ms());
}

TEST(Deadline, a_span_counts_from_the_call) {
  const std::int64_t before = monotonic_ns();
  const Deadline deadline = Deadline::after(10s);
  const std::int64_t after = monotonic_ns();
  CHECK_TRUE(deadline.ns() >= before + 10'000'000'000);
  CHECK_TRUE(deadline.ns() <= after + 10'000'000'000);
  CHECK_FALSE(deadline.passed());
}

TEST(Deadline, a_span_below_zero_is_over_already) {
  CHECK_TRUE(Deadline::after(-5s).passed());
}

TEST(Deadline, a_span_beyond_the_clock_is_never) {
  CHECK_TRUE(Deadline::after(std::chrono::nanoseconds::max()).is_never());
}

TEST(Deadline, milliseconds_for_poll_are_rounded_up_and_bounded) {
  const int left = Deadline::at_ns(monotonic_ns() + 4'000'000'000).remaining_ms();
  CHECK_TRUE(left > 3'000 && left <= 4'000);
  // A poll for zero milliseconds would spin through the last fraction.
  const Deadline soon = Deadline::at_ns(monotonic_ns() + 900'000);
  const int fraction = soon.remaining_ms();
  CHECK_TRUE(fraction == 1 || soon.passed());
  LONGS_EQUAL(0x7fffffff, Deadline::after(std::chrono::hours(24 * 365)).remaining_ms());
}

TEST(Deadline, the_earlier_one_is_less) {
  CHECK_TRUE(Deadline::now() < Deadline::after(1s));
  CHECK_TRUE(Deadline::after(1s) < Deadline::after(10s));
  CHECK_TRUE(Deadline::after(10s) < Deadline::never());
  CHECK_TRUE(Deadline::never() == Deadline());
}

}  // namespace deadline_test
