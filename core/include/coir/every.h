#pragma once

// A job that runs once each interval.
//
//   return every(1s, [] { show("a second has passed"); });

#include <concepts>
#include <cstdint>
#include <expected>
#include <type_traits>

#include <coir/deadline.h>
#include <coir/error.h>

namespace coir {

namespace detail {

// Beat is the clock of every: a grid of times that starts at its construction.
class Beat {
 public:
  explicit Beat(std::chrono::nanoseconds interval) noexcept;

  // next sleeps until the next time on the grid that has not passed.
  std::expected<void, Error> next() noexcept;

 private:
  std::int64_t interval_;
  std::int64_t due_;
};

}  // namespace detail

// every runs `job` on the caller once each `interval`, for the first time after one interval, until the caller is
// cancelled, a deadline around it passes or the job returns an error; that error is returned. The job returns nothing,
// or a std::expected<void, Error>. Runs never overlap. Their times do not drift: each is a whole number of intervals
// after the first, on the monotonic clock, and times that a long run has missed are skipped.
//
// From a fiber or a plain thread, and in a build without fibers. Errors: the job's; cancelled, timed_out; invalid (the
// interval is zero or less); unsupported (on a worker's own stack).
template <std::invocable F>
[[nodiscard]] std::expected<void, Error> every(std::chrono::nanoseconds interval, F&& job) {
  if (interval.count() <= 0) return std::unexpected(Error(ErrorCode::invalid));
  detail::Beat beat(interval);
  for (;;) {
    if (auto slept = beat.next(); !slept) return slept;
    if constexpr (std::is_void_v<std::invoke_result_t<F&> >) {
      job();
    } else {
      if (std::expected<void, Error> ran = job(); !ran) return ran;
    }
  }
}

}  // namespace coir
