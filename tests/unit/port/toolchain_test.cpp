// The toolchain's promises to the code above it: the header-only part of the C++23 library works with no C++ runtime
// library, and objects with static storage are constructed before main.

#include <charconv>
#include <chrono>
#include <expected>
#include <span>
#include <string_view>

#include <CppUTest/TestHarness.h>

namespace toolchain_test {

namespace {

int constructed_before_main = 0;
struct Constructed {
  Constructed() { constructed_before_main = 1; }
} constructed;

std::expected<int, int> parse(std::string_view text) {
  int value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc()) return std::unexpected(-1);
  return value;
}

}  // namespace

TEST_GROUP(Toolchain) {};

TEST(Toolchain, static_objects_are_constructed_before_main) {
  LONGS_EQUAL(1, constructed_before_main);
}

TEST(Toolchain, expected_carries_a_value_or_an_error) {
  LONGS_EQUAL(42, *parse("42"));
  CHECK_FALSE(parse("x").has_value());
}

TEST(Toolchain, durations_and_spans_compute) {
  using namespace std::chrono_literals;
  const int numbers[] = {1, 2, 3};
  LONGS_EQUAL(3, std::span(numbers).back());
  LONGS_EQUAL(1'500, std::chrono::nanoseconds(1500us).count() / 1000);
}

TEST(Toolchain, doubles_are_printed) {
  char text[32];
  snprintf(text, sizeof text, "%.3f %Lg", 1.0 / 3, 2.5L);
  STRCMP_EQUAL("0.333 2.5", text);
}

}  // namespace toolchain_test
