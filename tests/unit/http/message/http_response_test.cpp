#include <CppUTest/TestHarness.h>
#include <coir/http/wire/date.h>
#include <coir/http/wire/response.h>

#include <cstdio>
#include <string_view>

namespace http_response_test {

namespace {

using namespace coir::http;
using namespace std::string_view_literals;

constexpr std::string_view kDate = "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n";

}  // namespace

TEST_GROUP(HttpResponse) {
  char memory[512];
};

TEST(HttpResponse, a_head_is_built_line_by_line) {
  ResponseHead head(memory);
  head.start(200, kDate);
  head.fixed("Server: coird\r\n");
  head.field("Content-Type", "text/html");
  head.field("Age", 7);
  head.content_length(1234567890);
  head.connection(true, 1);
  CHECK(head.finish() ==
        "HTTP/1.1 200 OK\r\n"
        "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
        "Server: coird\r\n"
        "Content-Type: text/html\r\n"
        "Age: 7\r\n"
        "Content-Length: 1234567890\r\n"
        "\r\n");
}

TEST(HttpResponse, every_status_has_its_words) {
  for (int status = 100; status < 600; ++status) {
    ResponseHead head(memory);
    head.start(status, {});
    char expected[96];
    const std::string_view words = reason_phrase(status);
    const int size = snprintf(expected, sizeof expected, "HTTP/1.1 %d %.*s\r\n\r\n", status,
                              static_cast<int>(words.size()), words.data());
    CHECK(head.finish() == std::string_view(expected, static_cast<std::size_t>(size)));
  }
  for (const int status :
       {100, 200, 206, 304, 400, 404, 405, 408, 411, 412, 413, 414, 416, 417, 421, 431, 500, 501, 503, 505, 507}) {
    CHECK(reason_phrase(status) != "Unknown");
  }
}

TEST(HttpResponse, a_kept_connection_is_announced_to_http_1_0_only) {
  const auto connection = [&](bool keep_alive, int minor) {
    ResponseHead head(memory);
    head.start(204, {});
    head.connection(keep_alive, minor);
    return head.finish();
  };
  CHECK(connection(true, 1) == "HTTP/1.1 204 No Content\r\n\r\n");
  CHECK(connection(true, 0) == "HTTP/1.1 204 No Content\r\nConnection: keep-alive\r\n\r\n");
  CHECK(connection(false, 1) == "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
  CHECK(connection(false, 0) == "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
}

TEST(HttpResponse, a_head_that_does_not_fit_is_no_head) {
  // 19 bytes of status line with its end, 37 of Date, 21 of length, 2 at the end.
  for (std::size_t room = 0; room < sizeof memory; ++room) {
    ResponseHead head(std::span(memory, room));
    head.start(200, kDate);
    head.field("X", "0123456789");
    head.field("Y", 5);
    head.connection(false, 1);
    const std::size_t needed = 17 + kDate.size() + 15 + 6 + 19 + 2;
    LONGS_EQUAL(room < needed ? 0 : needed, head.finish().size());
  }
}

TEST(HttpResponse, a_length_that_does_not_fit_is_no_head) {
  for (std::size_t room = 17; room < 17 + 38; ++room) {
    ResponseHead head(std::span(memory, room));
    head.start(200, {});
    head.content_length(1);
    LONGS_EQUAL(0, head.finish().size());
  }
}

TEST(HttpResponse, a_value_cannot_split_the_response) {
  for (int c = 0; c < 256; ++c) {
    for (std::size_t place = 0; place < 19; ++place) {
      char value[] = "abcdefgh\tjklmnopqrs";
      value[place] = static_cast<char>(c);
      ResponseHead head(memory);
      head.start(200, {});
      head.field("Location", {value, 19});
      head.field("After", "it");
      const bool control = (c < 0x20 && c != '\t') || c == 0x7f;
      CHECK_EQUAL(control, head.finish().empty());
    }
  }
}

TEST(HttpResponse, a_spoilt_head_can_be_started_anew) {
  ResponseHead head(memory);
  head.start(200, {});
  head.field("X", "a\r\nSet-Cookie: b");
  CHECK(head.finish().empty());
  head.start(500, {});
  CHECK(head.finish() == "HTTP/1.1 500 Internal Server Error\r\n\r\n");
}

TEST(HttpResponse, decimals_of_every_length_are_written) {
  std::uint64_t number = 0;
  for (int digits = 1; digits <= 20; ++digits) {
    for (const std::uint64_t n : {number, number + 1}) {
      char expected[24];
      char text[20];
      snprintf(expected, sizeof expected, "%llu", static_cast<unsigned long long>(n));
      CHECK(std::string_view(text, write_decimal(text, n)) == expected);
    }
    number = number * 10 + 9;
  }
  char text[20];
  CHECK(std::string_view(text, write_decimal(text, UINT64_MAX)) == "18446744073709551615");
}

}  // namespace http_response_test
