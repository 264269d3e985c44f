// How long a client that follows a stream waits between two attempts.

#include "net/src/outbound/reconnect_pause.h"

#include <CppUTest/TestHarness.h>

namespace reconnect_pause_test {

using namespace std::chrono_literals;
using coir::ReconnectPause;

namespace {

constexpr ReconnectPause::Rules kRules = {.pause = 1s, .longest = 300s};

void equal(std::chrono::milliseconds wanted, std::chrono::milliseconds got) {
  LONGS_EQUAL(wanted.count(), got.count());
}

}  // namespace

TEST_GROUP(ReconnectPause) {};

TEST(ReconnectPause, doubles_with_each_attempt_that_brings_nothing_up_to_the_longest) {
  ReconnectPause pause;
  for (const auto expected : {1s, 2s, 4s, 8s, 16s, 32s, 64s, 128s, 256s, 300s, 300s}) {
    equal(expected, pause.after(false, kRules, {}));
  }
  for (int i = 0; i < 100; ++i) equal(300s, pause.after(false, kRules, {}));
}

TEST(ReconnectPause, is_spread_by_a_quarter_at_most) {
  for (int i = 0; i < 1000; ++i) {
    const auto spread = ReconnectPause::spread(1s);
    CHECK_TRUE(spread >= 1s && spread <= 1250ms);
  }
}

TEST(ReconnectPause, begins_again_behind_an_attempt_that_brings_something) {
  ReconnectPause pause;
  for (int i = 0; i < 5; ++i) static_cast<void>(pause.after(false, kRules, {}));
  equal(1s, pause.after(true, kRules, {}));
  equal(1s, pause.after(false, kRules, {}));
  equal(2s, pause.after(false, kRules, {}));
}

TEST(ReconnectPause, is_half_a_second_at_least_where_a_stream_wants_less_and_brings_nothing) {
  ReconnectPause pause;
  for (const auto expected : {500ms, 1000ms, 2000ms, 4000ms}) equal(expected, pause.after(false, kRules, 0));
  equal(0ms, pause.after(true, kRules, 0));
  equal(20ms, pause.after(true, kRules, 20));
  equal(500ms, pause.after(false, kRules, 20));
}

TEST(ReconnectPause, is_as_long_as_a_stream_wants_up_to_five_minutes) {
  ReconnectPause pause;
  equal(40s, pause.after(true, {.pause = 1ms, .longest = 1ms}, 40'000));
  equal(40s, pause.after(false, {.pause = 1ms, .longest = 1ms}, 40'000));
  for (const std::uint32_t wanted : {300'000u, 300'001u, 4'000'000'000u, UINT32_MAX}) {
    equal(300s, pause.after(true, kRules, wanted));
    equal(300s, pause.after(false, kRules, wanted));
  }
}

TEST(ReconnectPause, is_the_programs_own_where_that_is_shorter) {
  ReconnectPause pause;
  constexpr ReconnectPause::Rules hurried = {.pause = 1ms, .longest = 1ms};
  for (int i = 0; i < 20; ++i) equal(1ms, pause.after(false, hurried, {}));
  for (int i = 0; i < 20; ++i) equal(1ms, pause.after(false, hurried, 0));
}

}  // namespace reconnect_pause_test
