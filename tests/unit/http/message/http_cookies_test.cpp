#include <CppUTest/TestHarness.h>
#include <coir/http/wire/cookies.h>

#include <cstdint>
#include <string_view>

namespace http_cookies_test {

namespace {

using namespace coir::http;
using namespace std::string_view_literals;
using coir::ErrorCode;

char out[200];

// written is what write_cookie makes of it, or what went wrong.
std::string_view written(std::string_view name, std::string_view value, const CookieOptions& options = {}) {
  const auto cookie = write_cookie(name, value, options, out);
  if (cookie) return *cookie;
  return cookie.error() == ErrorCode::invalid ? "invalid" : "other";
}

}  // namespace

TEST_GROUP(HttpCookies) {
  Header headers[3] = {{"Host", "t"}, {"cookie", "a=1; b=\"x y\";c=;=d; e ; f=g=h"}, {"Cookie", "a=2;z=9"}};
  Request request;
  void setup() override { request.headers = headers; }
};

TEST(HttpCookies, are_walked_over_all_fields) {
  Cookies cookies(request);
  const auto next_is = [&](std::string_view name, std::string_view value) {
    const auto cookie = cookies.next();
    return cookie && cookie->name == name && cookie->value == value;
  };
  CHECK(next_is("a", "1"));
  CHECK(next_is("b", "\"x y\""));
  CHECK(next_is("c", ""));
  CHECK(next_is("f", "g=h"));
  CHECK(next_is("a", "2"));
  CHECK(next_is("z", "9"));
  CHECK_FALSE(cookies.next().has_value());
}

TEST(HttpCookies, the_first_of_a_name_counts_and_case_matters) {
  CHECK(cookie_value(request, "a") == "1");
  CHECK(cookie_value(request, "z") == "9");
  CHECK(cookie_value(request, "c").data() != nullptr);
  CHECK(cookie_value(request, "A").data() == nullptr);
  CHECK(cookie_value(request, "e").data() == nullptr);
  CHECK(cookie_value(Request(), "a").data() == nullptr);
}

TEST(HttpCookies, a_cookie_is_kept_from_scripts_and_other_sites_unless_asked) {
  CHECK(written("id", "abc") == "id=abc; Path=/; SameSite=Lax; HttpOnly");
  CHECK(written("id", "", {.max_age_s = 0, .path = {}, .http_only = false}) == "id=; Max-Age=0; SameSite=Lax");
  CHECK(
      written(
          "id", "x",
          {.max_age_s = 3600, .path = "/a", .domain = "example.org", .same_site = SameSite::strict, .secure = true}) ==
      "id=x; Max-Age=3600; Path=/a; Domain=example.org; SameSite=Strict; Secure; HttpOnly");
  CHECK(written("id", "x", {.max_age_s = INT64_MIN}) == "id=x; Max-Age=0; Path=/; SameSite=Lax; HttpOnly");
}

TEST(HttpCookies, bytes_that_could_end_a_cookie_or_a_line_are_refused) {
  for (const auto bad :
       {"a b"sv, "a;b"sv, "a,b"sv, "a\"b"sv, "a\\b"sv, "a\r\nb"sv, "a\0b"sv, "a\tb"sv, "\x7f"sv, "\xc3\xa4"sv}) {
    CHECK(written("id", bad) == "invalid");
    if (bad.find(' ') == bad.npos) CHECK(written(bad, "x") == "invalid");
  }
  CHECK(written("", "x") == "invalid");
  CHECK(written("a=b", "x") == "invalid");
  for (const auto bad : {"/a;b"sv, "/\r\n"sv, "/\0"sv, "/\xc3\xa4"sv}) {
    CHECK(written("id", "x", {.path = bad}) == "invalid");
    CHECK(written("id", "x", {.domain = bad}) == "invalid");
  }
}

TEST(HttpCookies, a_cookie_that_browsers_would_drop_is_refused) {
  CHECK(written("id", "x", {.same_site = SameSite::none}) == "invalid");
  CHECK(written("id", "x", {.same_site = SameSite::none, .secure = true}) != "invalid");
  CHECK(written("__Secure-id", "x") == "invalid");
  CHECK(written("__secure-id", "x", {.secure = true}) != "invalid");
  CHECK(written("__Host-id", "x") == "invalid");
  CHECK(written("__Host-id", "x", {.path = "/a", .secure = true}) == "invalid");
  CHECK(written("__Host-id", "x", {.domain = "a.b", .secure = true}) == "invalid");
  CHECK(written("__host-id", "x", {.secure = true}) != "invalid");
}

TEST(HttpCookies, a_text_that_does_not_fit_is_not_written) {
  char small[40];
  small[39] = '#';
  constexpr std::string_view whole = "id=abc; Path=/; SameSite=Lax; HttpOnly";
  CHECK(write_cookie("id", "abc", {}, {small, whole.size()}).value() == whole);
  CHECK(write_cookie("id", "abc", {}, {small, whole.size() - 1}).error() == ErrorCode::limit);
  CHECK_EQUAL('#', small[39]);
}

}  // namespace http_cookies_test
