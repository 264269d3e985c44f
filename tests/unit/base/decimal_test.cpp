// Floating point as text is the shortest that the C library reads back as the same number.
#include "core/src/base/decimal.h"

#include <CppUTest/TestHarness.h>
#include <coir/format.h>
#include <coir/stack_size.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bit>
#include <string_view>

#include "tests/support/random.h"
#include "tests/support/scale.h"
#include "tests/support/stack_depth.h"

namespace decimal_test {

using coir::format;

namespace {

constexpr int kRounds = coir::test::scaled({6'000, 2'000, 2'000, 500});
constexpr double kInfinity = __builtin_inf();

double back(const char* text, double) {
  return strtod(text, nullptr);
}
float back(const char* text, float) {
  return strtof(text, nullptr);
}

// Digits are those of a text that count.
struct Digits {
  char text[40];
  std::size_t size = 0;

  explicit Digits(std::string_view number) {
    for (const char c : number) {
      if (c == 'e') break;
      if (c >= '0' && c <= '9' && (c != '0' || size > 0)) text[size++] = c;
    }
    while (size > 0 && text[size - 1] == '0') --size;
  }
  std::string_view view() const { return {text, size}; }
};

// is_shortest compares with printf's digits, of which as many are asked for as are needed.
template <class T>
bool is_shortest(T number) {
  char text[40], other[40];
  format(text, number, '\0');
  if (std::bit_cast<std::uint64_t>(double{back(text, number)}) != std::bit_cast<std::uint64_t>(double{number})) {
    return false;
  }
  int precision = 0;
  do snprintf(other, sizeof other, "%.*e", precision, static_cast<double>(number));
  while (back(other, number) != number && ++precision < 17);
  const Digits ours(text), printed(other);
  return ours.size < printed.size || ours.view() == printed.view();  // shorter where printf's nearest is another number
}

template <class T>
void check(T number) {
  char line[100];
  if (!is_shortest(number)) FAIL(format(line, "not the shortest: ", number, '\0').data());
}

bool is(double number, std::string_view text) {
  char room[40];
  return format(room, number) == text;
}

}  // namespace

TEST_GROUP(Decimal) {};

TEST(Decimal, random_doubles_read_back_the_same_from_the_shortest_text) {
  coir::test::Random random{11};
  for (int i = 0; i < kRounds; ++i) {
    const auto high = std::uint64_t{random.below(UINT32_MAX)} << 32;
    const auto number = std::bit_cast<double>(high | random.below(UINT32_MAX));
    if (isfinite(number)) check(number);
  }
}

TEST(Decimal, so_do_random_floats) {
  coir::test::Random random{12};
  for (int i = 0; i < kRounds; ++i) {
    const auto number = std::bit_cast<float>(random.below(UINT32_MAX));
    if (isfinite(number)) check(number);
  }
}

TEST(Decimal, so_do_numbers_of_few_digits_and_their_neighbours) {
  coir::test::Random random{13};
  double powers[16] = {1};
  for (int i = 1; i < 16; ++i) powers[i] = powers[i - 1] * 10;
  for (int i = 0; i < kRounds; ++i) {
    const std::uint64_t whole =
        (std::uint64_t{random.below(1u << 26)} << 26 | random.below(1u << 26)) >> random.below(50);
    const double number = static_cast<double>(whole) / powers[random.below(16)] * (i % 2 == 0 ? 1 : -1);
    check(number);
    check(nextafter(number, kInfinity));
  }
}

TEST(Decimal, so_do_the_powers_of_two_and_their_neighbours) {
  for (int exponent = -1074; exponent < 1024; exponent += coir::test::kEmulated ? 7 : 1) {
    const double number = ldexp(1, exponent);
    check(number);
    check(nextafter(number, 0));
    check(nextafter(number, kInfinity));
  }
  for (int exponent = -149; exponent < 128; ++exponent) {
    const float number = ldexpf(1, exponent);
    check(number);
    check(nextafterf(number, 0));
    check(nextafterf(number, __builtin_inff()));
  }
}

TEST(Decimal, the_forms_are_those_of_javascript) {
  CHECK(is(0, "0"));
  CHECK(is(-0.0, "-0"));
  CHECK(is(5, "5"));
  CHECK(is(-21.5, "-21.5"));
  CHECK(is(0.1 + 0.2, "0.30000000000000004"));
  CHECK(is(1e20, "100000000000000000000"));
  CHECK(is(123456789012345680000.0, "123456789012345680000"));
  CHECK(is(1e21, "1e+21"));
  CHECK(is(0.000001, "0.000001"));
  CHECK(is(0.0000001234, "1.234e-7"));
  CHECK(is(1e23, "1e+23"));
  CHECK(is(9007199254740993.0, "9007199254740992"));
  CHECK(is(DBL_MAX, "1.7976931348623157e+308"));
  CHECK(is(DBL_MIN, "2.2250738585072014e-308"));
  CHECK(is(DBL_TRUE_MIN, "5e-324"));
  CHECK(is(-kInfinity, "-inf"));
  CHECK(is(-__builtin_nan(""), "nan"));
  char room[40];
  CHECK(format(room, 0.1f, " ", FLT_MAX, " ", FLT_TRUE_MIN) == "0.1 3.4028235e+38 1e-45");
}

TEST(Decimal, a_line_takes_less_than_1200_bytes_of_stack) {
  if (coir::kStackInflation != 1) return;
  const std::size_t deep = coir::test::depth_of([] {
    static char line[80];
    format(line, "pi ", 3.141592653589793, " ", DBL_MAX, "\n");
  });
  CHECK_COMPARE(deep, <, 1200);
}

}  // namespace decimal_test
