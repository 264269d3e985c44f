// Wrong passwords keep their own client waiting, and no other.

#include "net/src/http/routing/guess_limits.h"

#include <CppUTest/TestHarness.h>
#include <coir/config.h>
#if !COIR_NO_ASYNC
#include <coir/cancel_scope.h>
#endif

#include <algorithm>
#include <initializer_list>

namespace http_guess_limits_test {

using namespace std::chrono_literals;
using coir::http::GuessLimits;

TEST_GROUP(HttpGuessLimits) {};

TEST(HttpGuessLimits, one_address_gets_three_quarters_of_the_places) {
  GuessLimits limits(8);
  GuessLimits::Place places[6];
  for (auto& place : places) {
    const auto entered = limits.enter(1);
    CHECK(entered.has_value());
    place = *entered;
  }
  CHECK(!limits.enter(1));
  const auto other = limits.enter(2);
  CHECK(other.has_value());
  CHECK(limits.enter(3).has_value());
  CHECK(!limits.enter(4));
  limits.leave(*other, false);
  CHECK(!limits.enter(1));
  limits.leave(places[0], false);
  CHECK(limits.enter(1).has_value());
}

TEST(HttpGuessLimits, an_address_that_waits_is_not_forgotten_for_new_ones) {
  GuessLimits limits(4);
  for (int i = 0; i < 3; ++i) CHECK(limits.enter(1).has_value());
  for (std::uint64_t key = 2; key < 1000; ++key) {
    const auto place = limits.enter(key);
    CHECK(place.has_value());
    limits.leave(*place, false);
  }
  CHECK(!limits.enter(1));
}

TEST(HttpGuessLimits, the_third_wrong_password_and_those_after_it_cost_time) {
  LONGS_EQUAL(0, GuessLimits::pause_after(1).count());
  LONGS_EQUAL(0, GuessLimits::pause_after(2).count());
  std::chrono::milliseconds expected = 50ms;
  for (unsigned failures = 3; failures < 10; ++failures, expected *= 2) {
    LONGS_EQUAL(std::min<std::chrono::milliseconds>(expected, 3200ms).count(),
                GuessLimits::pause_after(failures).count());
  }
  LONGS_EQUAL(3200, GuessLimits::pause_after(255).count());
#if !COIR_NO_ASYNC
  GuessLimits limits(8);
  const auto guess = [&](std::uint64_t key) {
    const auto begin = coir::monotonic_ns();
    limits.leave(*limits.enter(key), true);
    return std::chrono::nanoseconds(coir::monotonic_ns() - begin);
  };
  for (int i = 0; i < 2; ++i) static_cast<void>(guess(1));
  CHECK(guess(1) >= 50ms);
  // One of another address in between changes nothing.
  static_cast<void>(guess(2));
  CHECK(guess(1) >= 100ms);
  CHECK(guess(1) >= 200ms);
#endif
}

#if !COIR_NO_ASYNC
// It still reads the verdict.
TEST(HttpGuessLimits, a_client_that_ends_its_side_waits_for_the_verdict_too) {
  GuessLimits limits(8);
  std::int64_t took_ns = 0;
  {
    coir::CancelScope ended;
    ended.cancel();
    for (int i = 0; i < 3; ++i) {
      const auto begin = coir::monotonic_ns();
      limits.leave(*limits.enter(1), true);
      took_ns = coir::monotonic_ns() - begin;
    }
  }
  CHECK(std::chrono::nanoseconds(took_ns) >= 50ms);
}
#endif

}  // namespace http_guess_limits_test
