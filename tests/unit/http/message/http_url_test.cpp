// Addresses are parsed, and references resolved (coir/http/wire/url.h).

#include <coir/http/wire/url.h>

#include <CppUTest/TestHarness.h>

#include <string_view>

namespace http_url_test {

using namespace coir::http;
using coir::ErrorCode;

namespace {

std::string_view resolved(std::string_view base, std::string_view reference) {
  static char out[256];
  const auto url = parse_url(base);
  if (!url) return "bad base";
  const auto text = resolve_url(*url, reference, out);
  return text ? *text : std::string_view(describe(text.error()));
}

bool is_bad(std::string_view text) {
  const auto url = parse_url(text);
  return !url && url.error() == ErrorCode::invalid;
}

}  // namespace

TEST_GROUP(HttpUrl) {};

TEST(HttpUrl, is_taken_apart) {
  const auto url = parse_url("HTTPS://me:pw@Board.example:8443/a/b?c=d?e#f");
  CHECK_TRUE(url.has_value());
  CHECK(url->secure && url->port == 8443 && url->host == "Board.example" && url->authority == "Board.example:8443");
  CHECK(url->user_info == "me:pw" && url->path == "/a/b" && url->query == "c=d?e");
}

TEST(HttpUrl, has_the_schemes_port_and_the_root_for_a_path) {
  const auto plain = parse_url("http://h");
  CHECK(plain && plain->port == 80 && plain->path == "/" && plain->query.data() == nullptr);
  const auto secure = parse_url("https://h:?q");
  CHECK(secure && secure->port == 443 && secure->path == "/" && secure->query == "q" && secure->authority == "h");
}

TEST(HttpUrl, has_an_address_of_ipv6_without_its_brackets) {
  const auto url = parse_url("http://[fe80::1]:81/x");
  CHECK(url && url->host == "fe80::1" && url->port == 81 && url->authority == "[fe80::1]:81");
  const auto bare = parse_url("http://[::1]");
  CHECK(bare && bare->host == "::1" && bare->port == 80);
}

TEST(HttpUrl, that_is_malformed_is_refused) {
  for (const std::string_view bad : {"",
                                     "h",
                                     "http:",
                                     "http:/h",
                                     "http://",
                                     "http:///x",
                                     "http://h:0/",
                                     "http://h:65536/",
                                     "http://h:x/",
                                     "http://h /",
                                     "http://h/a b",
                                     "http://h/\r\nX: y",
                                     "http://h\t",
                                     "http://a%41/",
                                     "http://[::1",
                                     "http://[]/",
                                     "http://h/\x80",
                                     "http://a,b/",
                                     "http://board.example\\@other.example/",
                                     "http://me:a\\b@board.example/",
                                     "1http://h/",
                                     "://h"}) {
    CHECK_TEXT(is_bad(bad), bad.data());
  }
  CHECK(parse_url("ftp://h/").error() == ErrorCode::unsupported);
  CHECK(parse_url("file:///etc/passwd").error() == ErrorCode::unsupported);
}

// RFC 3986, 5.4, with http and an authority that this reader takes.
TEST(HttpUrl, references_are_resolved_as_the_rfc_does) {
  constexpr std::string_view base = "http://a/b/c/d;p?q";
  constexpr std::string_view cases[][2] = {
      {"g", "http://a/b/c/g"},
      {"./g", "http://a/b/c/g"},
      {"g/", "http://a/b/c/g/"},
      {"/g", "http://a/g"},
      {"//g", "http://g/"},
      {"?y", "http://a/b/c/d;p?y"},
      {"g?y", "http://a/b/c/g?y"},
      {"#s", "http://a/b/c/d;p?q"},
      {"g#s", "http://a/b/c/g"},
      {";x", "http://a/b/c/;x"},
      {"", "http://a/b/c/d;p?q"},
      {".", "http://a/b/c/"},
      {"./", "http://a/b/c/"},
      {"..", "http://a/b/"},
      {"../", "http://a/b/"},
      {"../g", "http://a/b/g"},
      {"../..", "http://a/"},
      {"../../g", "http://a/g"},
      {"../../../g", "http://a/g"},
      {"/./g", "http://a/g"},
      {"/../g", "http://a/g"},
      {"g.", "http://a/b/c/g."},
      {"..g", "http://a/b/c/..g"},
      {"./../g", "http://a/b/g"},
      {"g/./h", "http://a/b/c/g/h"},
      {"g/../h", "http://a/b/c/h"},
      {"g?y/../x", "http://a/b/c/g?y/../x"},
      {"https://z/y", "https://z/y"},
      {"https://z?y", "https://z/?y"},
      {"//z:81/..//w", "http://z:81//w"},
      {"a b", "http://a/b/c/a%20b"},
      {"\xc3\xb6", "http://a/b/c/%C3%B6"},
      {"  g  ", "http://a/b/c/g"},
  };
  for (const auto& [reference, wanted] : cases)
    STRNCMP_EQUAL(wanted.data(), resolved(base, reference).data(), wanted.size());
  for (const auto& [reference, wanted] : cases) LONGS_EQUAL(wanted.size(), resolved(base, reference).size());
}

TEST(HttpUrl, references_that_hold_controls_or_do_not_fit_are_refused) {
  CHECK(resolved("http://a/", "x\ry") == describe(coir::Error(ErrorCode::invalid)));
  CHECK(resolved("http://a/", "http:x") == describe(coir::Error(ErrorCode::invalid)));
  char small[12];
  const auto base = parse_url("http://a/");
  CHECK(resolve_url(*base, "bcd", small).has_value());
  CHECK(resolve_url(*base, "bcde", small).error() == ErrorCode::limit);
}

TEST(HttpUrl, origins_are_scheme_host_and_port) {
  const auto same = [](std::string_view a, std::string_view b) { return same_origin(*parse_url(a), *parse_url(b)); };
  CHECK_TRUE(same("http://a/x", "http://A:80/y"));
  CHECK_FALSE(same("http://a/", "https://a/"));
  CHECK_FALSE(same("http://a/", "http://b/"));
  CHECK_FALSE(same("http://a/", "http://a:81/"));
  CHECK_FALSE(same("http://a/", "http://www.a/"));
}

}  // namespace http_url_test
