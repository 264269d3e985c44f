#include <coir/every.h>

#include <coir/cancel_scope.h>
#include <coir/fiber.h>
#include <coir/nursery.h>
#include <coir/runtime.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <span>

#include "tests/support/everywhere.h"
#include "tests/support/until.h"

namespace every_test {

using coir::CancelScope;
using coir::Deadline;
using coir::Error;
using coir::ErrorCode;
using coir::every;
using coir::Fiber;
using coir::monotonic_ns;
using coir::spawn;
using coir::test::Everywhere;
using coir::test::until;
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

TEST_GROUP_BASE(Every, Everywhere) {};

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
    until([&] { return runs >= 2; });
    expect(fiber.cancel().has_value() && fiber.join().has_value());
    expect(is(outcome, ErrorCode::cancelled));
    CancelScope scope(Deadline::after(2ms));
    const Outcome late = every(100us, [] {});
    expect(is(late, ErrorCode::timed_out) && scope.caused(late.error()));
  });
}

namespace {

// Span is from the end of a run, by the test's clock, to the begin of the next.
struct Span {
  std::int64_t end, next_begin;
};

// share_a_grid tells whether times that are a multiple of `interval` apart exist such that one lies in each span: after
// its end, and not after the begin of the next run. However late a run begins, the time that it was due at does.
bool share_a_grid(std::span<const Span> spans, std::int64_t interval) {
  return std::ranges::any_of(spans, [&](const Span& candidate) {
    return std::ranges::all_of(spans, [&](const Span& span) {
      const std::int64_t apart = (candidate.next_begin - span.end) % interval;
      const std::int64_t first = apart > 0 ? apart : apart + interval;  // of the grid's times after the end
      return first <= span.next_begin - span.end;
    });
  });
}

}  // namespace

// The test sets no bound on how late a run begins, for the machine may be slow. One grid of times must explain all
// runs: a run that makes up for a missed one has no time of any grid between the run before and itself. A schedule that
// starts anew at the end of each run never begins the next one in less than an interval; a slow machine needs a longer
// interval to show one that does.
TEST(Every, does_not_drift_overlap_or_catch_up) {
  everywhere([&] {
    for (std::chrono::nanoseconds interval = 8ms;; interval *= 2) {
      std::array<Span, 12> spans;
      std::size_t runs = 0;
      std::int64_t end = monotonic_ns();
      bool inside = false, overlaps = false, within = false;
      const Outcome outcome = every(interval, [&]() -> Outcome {
        const std::int64_t begin = monotonic_ns();
        overlaps = overlaps || inside;
        inside = true;
        spans[runs] = {end, begin};
        within = within || begin - end < interval.count();
        if (++runs % 4 == 0) static_cast<void>(coir::sleep(interval * 5 / 2));
        // A run leaves little time, in which `every` must find the next time on the grid.
        while (monotonic_ns() - begin < interval.count() * 3 / 4) {
        }
        inside = false;
        if (runs == spans.size()) return enough();
        end = monotonic_ns();
        return {};
      });
      expect(is(outcome, ErrorCode::end_of_stream) && !overlaps);
      // The grid begins behind the first end.
      expect(share_a_grid(std::span(spans).subspan(1), interval.count()));
      expect(spans[0].next_begin - spans[0].end >= interval.count());
      if (within || interval > 200ms) {
        expect(within);
        return;
      }
    }
  });
}

TEST(Every, a_beat_leaves_out_what_was_missed) {
  everywhere([&] {
    const std::int64_t start = monotonic_ns();
    coir::detail::Beat beat(1ms);
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

}  // namespace every_test
