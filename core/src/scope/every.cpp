#include <coir/every.h>

#include <coir/deadline.h>
#include <coir/sleep.h>

namespace coir::detail {

Beat::Beat(std::chrono::nanoseconds interval) noexcept : interval_(interval.count()), due_(monotonic_ns()) {}

std::expected<void, Error> Beat::next() noexcept {
  const std::int64_t late = monotonic_ns() - due_;
  // The time past the grid's last point is at most `late`, so that only the last step may leave the clock's range.
  due_ += late / interval_ * interval_;
  if (__builtin_add_overflow(due_, interval_, &due_)) return sleep_until(Deadline::never());
  return sleep_until(Deadline::at_ns(due_));
}

}  // namespace coir::detail
