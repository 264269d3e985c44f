#include <coir/every.h>

#include <coir/cancel_scope.h>
#include <coir/fiber.h>
#include <coir/nursery.h>
#include <coir/runtime.h>

#include <atomic>

#include "tests/support/everywhere.h"

using coir::CancelScope;
using coir::Deadline;
using coir::Error;
using coir::ErrorCode;
using coir::every;
using coir::Fiber;
using coir::monotonic_ns;
using coir::spawn;
using coir::test::Everywhere;
using namespace std::chrono_literals;

namespace {

using Outcome = std::expected<void, Error>;

bool is(const Outcome& outcome, ErrorCode code) {
  return !outcome && outcome.error() == code;
}

Outcome enough() {
  return std::unexpected(Error(ErrorCode::end_of_stream));
}

}  // namespace

TEST_GROUP_BASE(Every, Everywhere){};

TEST(Every, runs_first_after_one_interval_and_ends_with_the_jobs_error) {
  everywhere([&] {
    const std::int64_t start = monotonic_ns();
    int runs = 0;
    bool early = false;
    const Outcome outcome = every(2ms, [&]() -> Outcome {
      ++runs;
      early = early || monotonic_ns() - start < runs * 2'000'000;
      if (runs == 5) return enough();
      return {};
    });
    expect(is(outcome, ErrorCode::end_of_stream) && runs == 5 && !early);
  });
}

TEST(Every, an_interval_of_zero_or_less_is_refused) {
  everywhere([&] {
    int runs = 0;
    expect(is(every(0ns, [&] { ++runs; }), ErrorCode::invalid));
    expect(is(every(-1s, [&] { ++runs; }), ErrorCode::invalid));
    expect(runs == 0);
  });
}

TEST(Every, ends_when_cancelled_and_with_a_deadline_around_it) {
  everywhere([&] {
    std::atomic<int> runs{0};
    Outcome outcome;
    Fiber fiber = spawn([&] { outcome = every(100us, [&] { ++runs; }); });
    while (runs < 2) static_cast<void>(coir::sleep(1ms));
    expect(fiber.cancel().has_value() && fiber.join().has_value());
    expect(is(outcome, ErrorCode::cancelled));
    CancelScope scope(Deadline::after(2ms));
    const Outcome late = every(100us, [] {});
    expect(is(late, ErrorCode::timed_out) && scope.caused(late.error()));
  });
}

// Whenever a run begins, its time on the grid is the last that has passed: no run comes early, no lateness is carried
// on, and what a long run has missed is not made up for.
TEST(Every, does_not_drift_overlap_or_catch_up) {
  everywhere([&] {
    constexpr std::int64_t kInterval = 2'000'000;
    std::int64_t last_beat = 0;
    std::int64_t start = monotonic_ns();
    int runs = 0;
    bool inside = false, wrong_time = false;
    const Outcome outcome = every(std::chrono::nanoseconds(kInterval), [&]() -> Outcome {
      wrong_time = wrong_time || inside;
      inside = true;
      const std::int64_t beat = (monotonic_ns() - start) / kInterval;
      wrong_time = wrong_time || beat <= last_beat;
      last_beat = beat;
      if (++runs % 3 == 0) static_cast<void>(coir::sleep(5ms));
      inside = false;
      if (runs == 8) return enough();
      return {};
    });
    expect(is(outcome, ErrorCode::end_of_stream) && !wrong_time);
  });
}

TEST(Every, a_beat_leaves_out_what_was_missed) {
  everywhere([&] {
    coir::detail::Beat beat(1ms);
    const std::int64_t start = monotonic_ns();
    expect(beat.next().has_value());
    expect(coir::sleep(10ms).has_value());
    // At least nine beats were missed: the next one takes part of an interval, as does the one after.
    expect(beat.next().has_value() && beat.next().has_value());
    expect(monotonic_ns() - start >= 12'000'000);
  });
}

TEST(Every, an_interval_of_centuries_waits) {
  everywhere([&] {
    CancelScope scope(Deadline::after(1ms));
    expect(is(every(std::chrono::nanoseconds::max(), [] {}), ErrorCode::timed_out));
  });
}
