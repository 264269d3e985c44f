// Preconditions in the order of RFC 9110, 13.2.2.

#include <CppUTest/TestHarness.h>
#include <coir/http/wire/representation.h>

#include <string_view>

namespace http_conditional_test {

namespace {

using namespace coir::http;

constexpr std::int64_t kNow = 1767225600;
constexpr std::int64_t kModified = 784111777;
constexpr std::string_view kSame = "Sun, 06 Nov 1994 08:49:37 GMT";
constexpr std::string_view kBefore = "Sun, 06 Nov 1994 08:49:36 GMT";
constexpr std::string_view kAfter = "Sun, 06 Nov 1994 08:49:38 GMT";

constexpr Validators kStrong = {.etag = "\"abc\"", .modified = kModified};
constexpr Validators kWeak = {.etag = "W/\"abc\"", .modified = kModified, .stable = false};
constexpr Validators kAbsent = {.etag = {}, .has_modified = false, .exists = false};

Precondition outcome(const Request& request, const Validators& validators = kStrong) {
  return evaluate(request, validators, kNow).precondition;
}

Precondition none_match(std::string_view value, Method method = Method::get, const Validators& validators = kStrong) {
  Request r;
  r.method = method;
  r.if_none_match = value;
  return outcome(r, validators);
}

Precondition match(std::string_view value, const Validators& validators = kStrong) {
  Request r;
  r.method = Method::put;
  r.if_match = value;
  return outcome(r, validators);
}

bool range_applies(std::string_view if_range, const Validators& validators = kStrong) {
  Request r;
  r.range = "bytes=0-1";
  r.if_range = if_range;
  return evaluate(r, validators, kNow).range_applies;
}

}  // namespace

TEST_GROUP(HttpConditional) {};

TEST(HttpConditional, a_request_without_conditions_proceeds) {
  CHECK(outcome(Request{}) == Precondition::proceed);
  CHECK_FALSE(evaluate(Request{}, kStrong, kNow).range_applies);
}

TEST(HttpConditional, if_none_match_with_the_current_tag_is_304) {
  CHECK(none_match("\"abc\"") == Precondition::not_modified);
  CHECK(none_match("\"abc\"", Method::head) == Precondition::not_modified);
  CHECK(none_match("\"x\", \"abc\"") == Precondition::not_modified);
  CHECK(none_match("*") == Precondition::not_modified);
  CHECK(none_match("\"abd\"") == Precondition::proceed);
}

TEST(HttpConditional, if_none_match_of_another_method_is_412) {
  CHECK(none_match("\"abc\"", Method::put) == Precondition::failed);
  CHECK(none_match("*", Method::put) == Precondition::failed);
  CHECK(none_match("*", Method::put, kAbsent) == Precondition::proceed);
}

TEST(HttpConditional, if_none_match_compares_weakly) {
  CHECK(none_match("W/\"abc\"") == Precondition::not_modified);
  CHECK(none_match("\"abc\"", Method::get, kWeak) == Precondition::not_modified);
  CHECK(none_match("W/\"abc\"", Method::get, kWeak) == Precondition::not_modified);
}

TEST(HttpConditional, if_match_compares_strongly) {
  CHECK(match("\"abc\"") == Precondition::proceed);
  CHECK(match("\"x\" ,\"abc\"") == Precondition::proceed);
  CHECK(match("W/\"abc\"") == Precondition::failed);
  CHECK(match("\"abc\"", kWeak) == Precondition::failed);
  CHECK(match("W/\"abc\"", kWeak) == Precondition::failed);
  CHECK(match("\"x\"") == Precondition::failed);
}

TEST(HttpConditional, if_match_any_wants_something_to_exist) {
  CHECK(match("*") == Precondition::proceed);
  CHECK(match("*", kAbsent) == Precondition::failed);
  CHECK(match("\"abc\"", kAbsent) == Precondition::failed);
}

TEST(HttpConditional, every_line_of_a_list_field_counts) {
  const Header lines[] = {{"Host", "a"}, {"If-None-Match", "\"x\""}, {"if-none-match", "\"abc\""}};
  Request r;
  r.headers = lines;
  r.if_none_match = "\"x\"";
  CHECK(outcome(r) == Precondition::proceed);
  r.repeated = true;
  CHECK(outcome(r) == Precondition::not_modified);
}

TEST(HttpConditional, a_malformed_tag_list_matches_nothing) {
  for (const char* list : {"", "abc", "\"abc", "abc\"", "\"abc\" \"abc\"", "\"abc\" x", "w/\"abc\"", "W/ \"abc\"",
                           "W/abc", "W/", "*, \"abc\"", "\"a b\", \"abc\"", "\"abc\"x", "\"abc\",x"}) {
    CHECK_FALSE_TEXT(etag_list_matches(list, "\"abc\"", false), list);
  }
}

TEST(HttpConditional, a_tag_list_may_have_empty_elements_and_commas_in_tags) {
  CHECK(etag_list_matches(",, \"abc\" ,\t,", "\"abc\"", true));
  CHECK(etag_list_matches("\"a,b\", \"abc\"", "\"abc\"", true));
  CHECK(etag_list_matches("\"a,b\"", "\"a,b\"", true));
  CHECK(etag_list_matches("\"\"", "\"\"", true));
  CHECK_FALSE(etag_list_matches("\"x,\\\"abc\\\"\"", "\"abc\"", true));
  CHECK_FALSE(etag_list_matches("\"abc\"", "", true));
}

TEST(HttpConditional, if_modified_since_is_304_unless_changed_later) {
  Request r;
  r.if_modified_since = kSame;
  CHECK(outcome(r) == Precondition::not_modified);
  r.if_modified_since = kAfter;
  CHECK(outcome(r) == Precondition::not_modified);
  r.if_modified_since = kBefore;
  CHECK(outcome(r) == Precondition::proceed);
}

TEST(HttpConditional, if_modified_since_is_for_get_and_head) {
  Request r;
  r.method = Method::post;
  r.if_modified_since = kSame;
  CHECK(outcome(r) == Precondition::proceed);
  r.method = Method::head;
  CHECK(outcome(r) == Precondition::not_modified);
}

TEST(HttpConditional, if_none_match_overrides_if_modified_since) {
  Request r;
  r.if_none_match = "\"x\"";
  r.if_modified_since = kSame;
  CHECK(outcome(r) == Precondition::proceed);
}

TEST(HttpConditional, if_unmodified_since_is_412_when_changed_later) {
  Request r;
  r.method = Method::put;
  r.if_unmodified_since = kBefore;
  CHECK(outcome(r) == Precondition::failed);
  r.if_unmodified_since = kSame;
  CHECK(outcome(r) == Precondition::proceed);
}

TEST(HttpConditional, if_match_overrides_if_unmodified_since) {
  Request r;
  r.if_match = "\"abc\"";
  r.if_unmodified_since = kBefore;
  CHECK(outcome(r) == Precondition::proceed);
}

TEST(HttpConditional, if_match_comes_before_if_none_match) {
  Request r;
  r.if_match = "\"x\"";
  r.if_none_match = "\"abc\"";
  CHECK(outcome(r) == Precondition::failed);
}

TEST(HttpConditional, a_text_that_is_no_date_is_ignored) {
  for (const std::string_view value : {std::string_view("yesterday"), std::string_view("", 0)}) {
    Request r;
    r.if_modified_since = value;
    CHECK(outcome(r) == Precondition::proceed);
    r.if_modified_since = {};
    r.if_unmodified_since = value;
    CHECK(outcome(r) == Precondition::proceed);
  }
}

TEST(HttpConditional, dates_are_ignored_where_there_is_none_to_compare) {
  Request r;
  r.if_modified_since = kAfter;
  CHECK(outcome(r, kAbsent) == Precondition::proceed);
  r.if_modified_since = {};
  r.if_unmodified_since = kBefore;
  CHECK(outcome(r, kAbsent) == Precondition::proceed);
}

TEST(HttpConditional, a_range_without_if_range_applies_to_get_alone) {
  Request r;
  r.range = "bytes=0-1";
  CHECK(evaluate(r, kStrong, kNow).range_applies);
  r.method = Method::head;
  CHECK_FALSE(evaluate(r, kStrong, kNow).range_applies);
}

TEST(HttpConditional, if_range_wants_the_very_same_strong_tag) {
  CHECK(range_applies("\"abc\""));
  CHECK_FALSE(range_applies("\"abd\""));
  CHECK_FALSE(range_applies("W/\"abc\""));
  CHECK_FALSE(range_applies("W/\"abc\"", kWeak));
  CHECK_FALSE(range_applies("\"abc\", \"abc\""));
}

TEST(HttpConditional, if_range_wants_the_very_same_date_of_a_settled_file) {
  CHECK(range_applies(kSame));
  CHECK_FALSE(range_applies(kAfter));
  CHECK_FALSE(range_applies(kBefore));
  CHECK_FALSE(range_applies(kSame, kWeak));
}

TEST(HttpConditional, a_malformed_if_range_sends_the_whole) {
  CHECK_FALSE(range_applies(std::string_view("", 0)));
  CHECK_FALSE(range_applies("x"));
  CHECK_FALSE(range_applies("*"));
}

TEST(HttpConditional, a_tag_tells_time_and_size) {
  constexpr std::int64_t now = kNow * 1'000'000'000;
  CHECK(make_etag(0x1234, 0xab, now).text() == "\"1234-ab\"");
  CHECK(make_etag(0, 0, now).text() == "\"0-0\"");
  CHECK(make_etag(-1, UINT64_MAX, now).text() == "\"ffffffffffffffff-ffffffffffffffff\"");
  CHECK(ETag().empty());
}

TEST(HttpConditional, a_tag_is_weak_until_the_file_has_settled) {
  constexpr std::int64_t now = kNow * 1'000'000'000;
  CHECK(make_etag(now, 1, now).weak());
  CHECK(make_etag(now - kStableNs + 1, 1, now).weak());
  CHECK_FALSE(make_etag(now - kStableNs, 1, now).weak());
  CHECK(make_etag(now + 1, 1, now).weak());
  CHECK(make_etag(0x1234, 1, 0x1235).text() == "W/\"1234-1\"");
}

}  // namespace http_conditional_test
