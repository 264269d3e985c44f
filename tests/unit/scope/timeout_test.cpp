#include <coir/timeout.h>

#include <coir/fiber.h>
#include <coir/runtime.h>

#include "tests/support/everywhere.h"

using coir::Error;
using coir::ErrorCode;
using coir::timeout;
using coir::test::Everywhere;
using namespace std::chrono_literals;

TEST_GROUP_BASE(Timeout, Everywhere){};

TEST(Timeout, what_comes_in_time_is_returned) {
  everywhere([&] {
    const auto value = timeout(1h, [] { return 7; });
    expect(value && *value == 7);
    expect(timeout(1h, [] {}).has_value());
    const auto failed =
        timeout(1h, []() -> std::expected<int, Error> { return std::unexpected(Error(ErrorCode::closed)); });
    expect(!failed && failed.error() == ErrorCode::closed);
  });
}

TEST(Timeout, what_comes_late_is_dropped_whatever_it_is) {
  everywhere([&] {
    const auto late = timeout(1ms, []() -> std::expected<int, Error> {
      static_cast<void>(coir::sleep(24h));
      return 7;
    });
    expect(!late && late.error() == ErrorCode::timed_out && late.error().scope == 0);
    const auto other = timeout(1ms, []() -> std::expected<int, Error> {
      static_cast<void>(coir::sleep(24h));
      return std::unexpected(Error(ErrorCode::closed));
    });
    expect(!other && other.error() == ErrorCode::timed_out);
  });
}

TEST(Timeout, of_an_outer_deadline_tells_that) {
  everywhere([&] {
    std::expected<void, Error> inner;
    const auto outer = timeout(2ms, [&] {
      inner = timeout(1h, [] { return coir::sleep(24h); });
      return inner;
    });
    expect(!inner && inner.error() == ErrorCode::timed_out && inner.error().scope != 0);
    expect(!outer && outer.error() == ErrorCode::timed_out && outer.error().scope == 0);
  });
}
