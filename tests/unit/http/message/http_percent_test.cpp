#include <CppUTest/TestHarness.h>
#include <coir/http/wire/query.h>

#include <cstdint>
#include <string_view>

namespace http_percent_test {

namespace {

using namespace coir::http;
using namespace std::string_view_literals;
using coir::ErrorCode;

char out[64];

bool decodes(std::string_view text, std::string_view wanted) {
  const auto decoded = decode_percent(text, out);
  return decoded && *decoded == wanted;
}
bool decodes_form(std::string_view text, std::string_view wanted) {
  const auto decoded = decode_form_text(text, out);
  return decoded && *decoded == wanted;
}
bool is_invalid(std::string_view text) {
  const auto decoded = decode_percent(text, out);
  return !decoded && decoded.error() == ErrorCode::invalid;
}
bool value_is(std::string_view query, std::string_view name, std::string_view wanted) {
  const auto value = query_value(query, name, out);
  return value && *value == wanted;
}
bool has_no(std::string_view query, std::string_view name) {
  const auto value = query_value(query, name, out);
  return !value && value.error() == ErrorCode::not_found;
}

}  // namespace

TEST_GROUP(HttpPercent) {};

TEST(HttpPercent, every_byte_but_nul_is_decoded_in_either_case) {
  for (unsigned byte = 1; byte < 256; ++byte) {
    for (const std::string_view digits : {"0123456789abcdef"sv, "0123456789ABCDEF"sv}) {
      const char escape[] = {'%', digits[byte >> 4], digits[byte & 15]};
      const auto decoded = decode_percent({escape, 3}, out);
      CHECK(decoded.has_value());
      CHECK_EQUAL(1u, decoded->size());
      CHECK_EQUAL(byte, static_cast<unsigned char>((*decoded)[0]));
    }
  }
  CHECK(decodes("", ""));
  CHECK(decodes("a%20b+c%2525", "a b+c%25"));
}

TEST(HttpPercent, a_malformed_escape_and_nul_are_invalid) {
  for (const auto text : {"%"sv, "%4"sv, "a%4"sv, "%g0"sv, "%0g"sv, "%%41"sv, "% 41"sv, "%-1"sv, "%00"sv, "a\0"sv}) {
    CHECK(is_invalid(text));
  }
}

TEST(HttpPercent, a_form_has_plus_for_space_and_forgives_a_stray_percent) {
  CHECK(decodes_form("a+b%2Bc", "a b+c"));
  CHECK(decodes_form("100%", "100%"));
  CHECK(decodes_form("%zz%4", "%zz%4"));
  CHECK(decodes_form("%%41", "%A"));
  CHECK(decode_form_text("%00", out).error() == ErrorCode::invalid);
}

TEST(HttpPercent, a_text_that_does_not_fit_is_not_written) {
  char small[] = "1234#";
  CHECK(decode_percent("%41%42%43%44%45", {small, 4}).error() == ErrorCode::limit);
  CHECK(decode_percent("%41%42%43%44", {small, 4}).value() == "ABCD");
  CHECK(encode_percent("ab ", {small, 4}).error() == ErrorCode::limit);
  CHECK(encode_percent("a ", {small, 4}).value() == "a%20");
  CHECK_EQUAL('#', small[4]);
}

TEST(HttpPercent, is_decoded_where_it_stands) {
  char text[] = "a%41%42b";
  CHECK(decode_percent(text, text).value_or("").substr(0, 4) == "aABb");
}

TEST(HttpPercent, an_encoded_text_is_decoded_to_the_same) {
  char all[255], encoded[3 * 255], decoded[255];
  for (unsigned i = 0; i < 255; ++i) all[i] = static_cast<char>(i + 1);
  const std::string_view text(all, sizeof all);
  const auto there = encode_percent(text, encoded);
  CHECK(there.has_value());
  CHECK(there->find_first_not_of("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-._~%") == there->npos);
  CHECK(decode_percent(*there, decoded).value() == text);
  CHECK(decode_form_text(*there, decoded).value() == text);
  CHECK(encode_percent("/a-._~z?", out).value() == "%2Fa-._~z%3F");
}

TEST(HttpPercent, an_integer_is_all_of_the_text_and_fits) {
  CHECK_EQUAL(0, parse_integer("0").value());
  CHECK_EQUAL(7, parse_integer("007").value());
  CHECK_EQUAL(-12, parse_integer("-12").value());
  CHECK(parse_integer("9223372036854775807") == INT64_MAX);
  CHECK(parse_integer("-9223372036854775808") == INT64_MIN);
  for (const auto text : {""sv, "-"sv, "+1"sv, " 1"sv, "1 "sv, "0x1"sv, "1.0"sv, "--1"sv, "9223372036854775808"sv,
                          "-9223372036854775809"sv, "99999999999999999999"sv}) {
    CHECK_FALSE(parse_integer(text).has_value());
  }
}

TEST_GROUP(HttpQuery) {};

TEST(HttpQuery, is_walked_pair_by_pair) {
  QueryPairs pairs("a=1&&b=&c&=d&e=f=g&");
  const auto next_is = [&](std::string_view name, std::string_view value) {
    const auto pair = pairs.next();
    return pair && pair->name == name && pair->value == value;
  };
  CHECK(next_is("a", "1"));
  CHECK(next_is("b", ""));
  CHECK(next_is("c", ""));
  CHECK(next_is("", "d"));
  CHECK(next_is("e", "f=g"));
  CHECK_FALSE(pairs.next().has_value());
  CHECK_FALSE(QueryPairs("").next().has_value());
}

TEST(HttpQuery, a_pair_without_an_equals_sign_has_no_value) {
  QueryPairs pairs("a&b=");
  CHECK(pairs.next()->value.data() == nullptr);
  CHECK(pairs.next()->value.data() != nullptr);
}

TEST(HttpQuery, the_first_pair_of_a_name_gives_its_decoded_value) {
  CHECK(value_is("a=1&b=x+y%21&b=2", "b", "x y!"));
  CHECK(value_is("flag&a=1", "flag", ""));
  CHECK(value_is("a=%2526", "a", "%26"));
  CHECK(has_no("a=1&b=2", "c"));
  CHECK(has_no("a=1", "A"));
  CHECK(has_no("ab=1", "a"));
  CHECK(has_no("a=1", "ab"));
  CHECK(has_no("", "a"));
  CHECK(has_no({}, ""));
  CHECK(query_encoded("a=%41", "a") == "%41");
}

TEST(HttpQuery, names_are_compared_decoded) {
  CHECK(value_is("%66irst+name=x", "first name", "x"));
  CHECK(value_is("a%3Db=x", "a=b", "x"));
  CHECK(has_no("a%3Db=x", "a"));
}

TEST(HttpQuery, a_value_that_does_not_fit_or_holds_nul_is_an_error) {
  CHECK(query_value("a=12345", "a", {out, 4}).error() == ErrorCode::limit);
  CHECK(query_value("a=1%002", "a", out).error() == ErrorCode::invalid);
}

}  // namespace http_percent_test
