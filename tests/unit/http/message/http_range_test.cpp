#include <CppUTest/TestHarness.h>
#include <coir/http/wire/representation.h>

#include <string_view>

namespace http_range_test {

namespace {

using namespace coir::http;

bool is_part(const Range& range, std::uint64_t first, std::uint64_t last) {
  return range.kind == Range::Kind::part && range.first == first && range.last == last;
}

Range::Kind kind(std::string_view value, std::uint64_t size) {
  return parse_range(value, size).kind;
}

}  // namespace

TEST_GROUP(HttpRange) {};

TEST(HttpRange, first_and_last_are_included) {
  CHECK(is_part(parse_range("bytes=0-99", 1000), 0, 99));
  CHECK(is_part(parse_range("bytes=500-500", 1000), 500, 500));
  LONGS_EQUAL(100, parse_range("bytes=0-99", 1000).bytes());
}

TEST(HttpRange, an_open_end_means_to_the_end) {
  CHECK(is_part(parse_range("bytes=900-", 1000), 900, 999));
}

TEST(HttpRange, a_last_position_past_the_end_is_the_end) {
  CHECK(is_part(parse_range("bytes=900-1000", 1000), 900, 999));
  CHECK(is_part(parse_range("bytes=0-18446744073709551615", 1000), 0, 999));
  CHECK(is_part(parse_range("bytes=0-99999999999999999999999", 1000), 0, 999));
}

TEST(HttpRange, a_suffix_is_the_last_bytes) {
  CHECK(is_part(parse_range("bytes=-1", 1000), 999, 999));
  CHECK(is_part(parse_range("bytes=-1000", 1000), 0, 999));
  CHECK(is_part(parse_range("bytes=-99999999999999999999999", 1000), 0, 999));
}

TEST(HttpRange, a_range_behind_the_end_is_unsatisfiable) {
  CHECK(kind("bytes=1000-", 1000) == Range::Kind::unsatisfiable);
  CHECK(kind("bytes=1000-1001", 1000) == Range::Kind::unsatisfiable);
  CHECK(kind("bytes=99999999999999999999999-", 1000) == Range::Kind::unsatisfiable);
  CHECK(kind("bytes=0-", 0) == Range::Kind::unsatisfiable);
  CHECK(kind("bytes=-0", 1000) == Range::Kind::unsatisfiable);
}

TEST(HttpRange, a_suffix_of_nothing_is_served_whole) {
  CHECK(kind("bytes=-5", 0) == Range::Kind::whole);
}

TEST(HttpRange, the_unit_is_compared_without_case) {
  CHECK(is_part(parse_range("Bytes=1-2", 10), 1, 2));
  CHECK(is_part(parse_range("bytes= 1-2 ", 10), 1, 2));
}

TEST(HttpRange, several_ranges_are_served_whole) {
  CHECK(kind("bytes=0-1,3-4", 10) == Range::Kind::whole);
  CHECK(kind("bytes=0-1, -1", 10) == Range::Kind::whole);
  CHECK(kind("bytes=0-1,", 10) == Range::Kind::whole);
  CHECK(kind("bytes=-1,0-1", 10) == Range::Kind::whole);
}

TEST(HttpRange, a_malformed_or_foreign_range_is_ignored) {
  for (const char* value : {"",
                            "bytes",
                            "bytes=",
                            "bytes= ",
                            "bytes=-",
                            "bytes=--5",
                            "bytes=+1-2",
                            "bytes=1",
                            "bytes=2-1",
                            "bytes=a-b",
                            "bytes=1-b",
                            "bytes=0x1-2",
                            "bytes =0-1",
                            "bytes:0-1",
                            "lines=0-1",
                            "0-1",
                            "=0-1",
                            "bytes=1-2-3",
                            "bytes=1- 2",
                            "bytes=1 -2",
                            "bytes=-1x",
                            "bytes=- 1",
                            "bytes=18446744073709551616-5"}) {
    CHECK_TEXT(kind(value, 1000) == Range::Kind::whole, value);
  }
}

TEST(HttpRange, an_absent_field_is_the_whole) {
  CHECK(kind({}, 10) == Range::Kind::whole);
}

TEST(HttpRange, content_range_names_the_part_and_the_size) {
  char text[kContentRangeBytes];
  CHECK(write_content_range(parse_range("bytes=0-99", 1234), 1234, text) == "bytes 0-99/1234");
  CHECK(write_content_range(parse_range("bytes=1234-", 1234), 1234, text) == "bytes */1234");
  const Range longest = {Range::Kind::part, UINT64_MAX, UINT64_MAX};
  CHECK(write_content_range(longest, UINT64_MAX, text) ==
        "bytes 18446744073709551615-18446744073709551615/18446744073709551615");
}

}  // namespace http_range_test
