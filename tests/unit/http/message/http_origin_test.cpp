// Which pages may send a request: those of its own origin, and those of a list.

#include <CppUTest/TestHarness.h>
#include <coir/http/wire/request.h>

#include <cstdio>
#include <initializer_list>
#include <string_view>

#include "net/src/http/message/origin.h"

namespace http_origin_test {

namespace {

using namespace coir::http;

// Asked is a parsed request; it holds the bytes that the request points into.
struct Asked {
  explicit Asked(const char* fields, std::string_view host = "board.local") {
    const int size = snprintf(head, sizeof head, "GET / HTTP/1.1\r\nHost: %.*s\r\n%s\r\n",
                              static_cast<int>(host.size()), host.data(), fields);
    const ParseResult result = parse_head({head, static_cast<std::size_t>(size)}, 0, lines, {}, request);
    CHECK_TRUE(result.state == ParseState::complete);
  }

  char head[1024];
  Header lines[32];
  Request request;
};

bool allowed(std::string_view origin, std::string_view host, bool secure = false,
             std::initializer_list<std::string_view> list = {}) {
  char field[200];
  snprintf(field, sizeof field, "Origin: %.*s\r\n", static_cast<int>(origin.size()), origin.data());
  return is_allowed_origin(Asked(field, host).request, secure, {list.begin(), list.size()});
}

}  // namespace

TEST_GROUP(HttpOrigin) {};

TEST(HttpOrigin, a_request_without_origin_is_no_browsers_and_allowed) {
  CHECK_TRUE(is_allowed_origin(Asked("").request, false, {}));
}

TEST(HttpOrigin, a_page_of_the_same_origin_is_allowed) {
  CHECK_TRUE(allowed("http://board.local", "board.local"));
  CHECK_TRUE(allowed("http://Board.local", "board.LOCAL"));
  CHECK_TRUE(allowed("http://board.local", "board.local:80"));
  CHECK_TRUE(allowed("http://board.local:8080", "board.local:8080"));
  CHECK_TRUE(allowed("https://board.local", "board.local:443", true));
  CHECK_TRUE(allowed("http://[fe80::1]:81", "[fe80::1]:81"));
}

TEST(HttpOrigin, a_page_whose_tls_a_proxy_has_ended_is_allowed) {
  CHECK_TRUE(allowed("https://board.local", "board.local"));
  CHECK_TRUE(allowed("https://board.local", "board.local:443"));
  CHECK_TRUE(allowed("https://board.local:8443", "board.local:8443"));
  CHECK_FALSE(allowed("https://board.local", "board.local:80"));
  CHECK_FALSE(allowed("https://board.local:80", "board.local"));
  CHECK_FALSE(allowed("https://evil.example", "board.local"));
}

TEST(HttpOrigin, a_page_of_another_origin_is_not_allowed) {
  CHECK_FALSE(allowed("http://evil.example", "board.local"));
  CHECK_FALSE(allowed("http://board.local.evil.example", "board.local"));
  CHECK_FALSE(allowed("http://evilboard.local", "board.local"));
  CHECK_FALSE(allowed("http://board.local:8080", "board.local"));
  CHECK_FALSE(allowed("http://board.local", "board.local:443"));
  CHECK_FALSE(allowed("http://board.local", "board.local", true));
  CHECK_FALSE(allowed("null", "board.local"));
  CHECK_FALSE(allowed("", "board.local"));
  CHECK_FALSE(allowed("http://", "board.local"));
  CHECK_FALSE(allowed("http://board.local/", "board.local"));
}

TEST(HttpOrigin, an_origin_of_the_list_is_allowed) {
  CHECK_TRUE(allowed("https://app.example", "board.local", false, {"http://a.example", "https://app.example"}));
  CHECK_FALSE(allowed("http://app.example", "board.local", false, {"https://app.example"}));
  CHECK_TRUE(allowed("null", "board.local", false, {"null"}));
  CHECK_TRUE(allowed("http://anybody.example", "board.local", false, {"*"}));
}

TEST(HttpOrigin, an_origin_that_is_there_twice_is_not_allowed) {
  constexpr std::string_view all[] = {"*"};
  CHECK_FALSE(
      is_allowed_origin(Asked("Origin: http://board.local\r\nOrigin: http://board.local\r\n").request, false, all));
}

}  // namespace http_origin_test
