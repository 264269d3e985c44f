#include <CppUTest/TestHarness.h>
#include <coir/http/wire/date.h>

#include <string_view>

namespace http_date_test {

namespace {

using namespace coir::http;

constexpr std::int64_t kExample = 784111777;  // of RFC 9110, 5.6.7
constexpr std::int64_t kNow = 1767225600;     // 2026-01-01
constexpr std::int64_t kDay = 86400;

std::string_view format(std::int64_t seconds) {
  static char text[kDateBytes];
  format_date(seconds, text);
  return {text, sizeof text};
}

std::int64_t parse(std::string_view text) {
  return parse_date(text, kNow).value_or(-1);
}

}  // namespace

TEST_GROUP(HttpDate) {};

TEST(HttpDate, the_three_formats_of_the_standard_are_one_moment) {
  CHECK_EQUAL(kExample, parse("Sun, 06 Nov 1994 08:49:37 GMT"));
  CHECK_EQUAL(kExample, parse("Sunday, 06-Nov-94 08:49:37 GMT"));
  CHECK_EQUAL(kExample, parse("Sun Nov  6 08:49:37 1994"));
}

TEST(HttpDate, a_date_is_written_as_imf_fixdate) {
  CHECK(format(kExample) == "Sun, 06 Nov 1994 08:49:37 GMT");
  CHECK(format(0) == "Thu, 01 Jan 1970 00:00:00 GMT");
  CHECK(format(-1) == "Wed, 31 Dec 1969 23:59:59 GMT");
  CHECK(format(951782400) == "Tue, 29 Feb 2000 00:00:00 GMT");
  CHECK(format(4107542399) == "Sun, 28 Feb 2100 23:59:59 GMT");
  CHECK(format(4107542400) == "Mon, 01 Mar 2100 00:00:00 GMT");
  CHECK(format(INT64_MAX) == "Fri, 31 Dec 9999 23:59:59 GMT");
  CHECK(format(INT64_MIN) == "Sat, 01 Jan 0000 00:00:00 GMT");
}

TEST(HttpDate, every_day_of_four_centuries_is_read_back) {
  int weekday = 6;  // 2000-01-01 was a Saturday
  const std::string_view days = "SunMonTueWedThuFriSat";
  for (std::int64_t day = 10957; day < 10957 + 146097; ++day) {
    const std::int64_t moment = day * kDay + day % kDay;
    const std::string_view text = format(moment);
    CHECK(std::string_view(text.data(), 3) == std::string_view(days.data() + 3 * weekday, 3));
    CHECK_EQUAL(moment, parse(text));
    weekday = (weekday + 1) % 7;
  }
}

TEST(HttpDate, a_two_digit_year_is_at_most_fifty_years_ahead) {
  CHECK_EQUAL(parse("Thu, 01 Jan 2076 00:00:00 GMT"), parse("Thursday, 01-Jan-76 00:00:00 GMT"));
  CHECK_EQUAL(parse("Thu, 01 Jan 1977 00:00:00 GMT"), parse("Thursday, 01-Jan-77 00:00:00 GMT"));
  CHECK_EQUAL(parse("Thu, 01 Jan 2026 00:00:00 GMT"), parse("Thursday, 01-Jan-26 00:00:00 GMT"));
  // A board whose clock stands at 1970.
  CHECK_EQUAL(kExample, parse_date("Sunday, 06-Nov-94 08:49:37 GMT", 5).value_or(-1));
  CHECK_EQUAL(parse("Thu, 01 Jan 2020 00:00:00 GMT"), parse_date("Thursday, 01-Jan-20 00:00:00 GMT", 5).value_or(-1));
}

TEST(HttpDate, the_sixtieth_second_is_the_next_minute) {
  CHECK_EQUAL(parse("Sun, 01 Jan 2017 00:00:00 GMT"), parse("Sat, 31 Dec 2016 23:59:60 GMT"));
}

TEST(HttpDate, anything_else_is_no_date) {
  for (const char* text : {"",
                           "0",
                           "Sun",
                           "Sun,",
                           "784111777",
                           "Sun, 06 Nov 1994 08:49:37",
                           "Sun, 06 Nov 1994 08:49:37 UTC",
                           "Sun, 06 Nov 1994 08:49:37 GMT ",
                           " Sun, 06 Nov 1994 08:49:37 GMT",
                           "sun, 06 Nov 1994 08:49:37 GMT",
                           "Sun, 06 nov 1994 08:49:37 GMT",
                           "Sun, 6 Nov 1994 08:49:37 GMT",
                           "Sun, 06 Nov 94 08:49:37 GMT",
                           "Sun, 00 Nov 1994 08:49:37 GMT",
                           "Sun, 31 Nov 1994 08:49:37 GMT",
                           "Tue, 29 Feb 1994 08:49:37 GMT",
                           "Thu, 29 Feb 1900 00:00:00 GMT",
                           "Sun, 06 Nov 1994 24:00:00 GMT",
                           "Sun, 06 Nov 1994 08:60:37 GMT",
                           "Sun, 06 Nov 1994 08:49:61 GMT",
                           "Sun, 06 Nov 1994 8:49:37 GMT",
                           "Sun, 06-Nov-94 08:49:37 GMT",
                           "Sunday, 06 Nov 1994 08:49:37 GMT",
                           "Sunday, 06-Nov-1994 08:49:37 GMT",
                           "Sun Nov 6 08:49:37 1994",
                           "Sun Nov  6 08:49:37 1994 GMT",
                           "Sun Nov  6 08:49:37",
                           "Sun, +6 Nov 1994 08:49:37 GMT",
                           "Xxx, 06 Nov 1994 08:49:37 GMT"}) {
    CHECK_FALSE_TEXT(parse_date(text, kNow).has_value(), text);
  }
}

TEST(HttpDate, no_prefix_of_a_date_is_a_date) {
  for (const std::string_view text :
       {"Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"}) {
    for (std::size_t size = 0; size < text.size(); ++size)
      CHECK_FALSE(parse_date({text.data(), size}, kNow).has_value());
  }
}

TEST(HttpDate, the_cached_line_follows_the_clock) {
  CachedDate date;
  CHECK(date.line(kNow) == "Date: Thu, 01 Jan 2026 00:00:00 GMT\r\n");
  CHECK(date.line(kNow) == "Date: Thu, 01 Jan 2026 00:00:00 GMT\r\n");
  CHECK(date.line(kNow + 1) == "Date: Thu, 01 Jan 2026 00:00:01 GMT\r\n");
  CHECK(date.line(kNow - 1) == "Date: Wed, 31 Dec 2025 23:59:59 GMT\r\n");
}

// RFC 9110, 6.6.1: a server without a clock must not send Date.
TEST(HttpDate, a_clock_that_was_never_set_gives_no_line) {
  CachedDate date;
  CHECK(date.line(42).empty());
  CHECK(date.line(kClockIsSet - 1).empty());
  CHECK(date.line(kClockIsSet) == "Date: Wed, 01 Jan 2020 00:00:00 GMT\r\n");
}

}  // namespace http_date_test
