// read_form and read_content, called by a handler.

#include <CppUTest/TestHarness.h>
#include <coir/http/content.h>
#include <coir/http/server.h>
#include <coir/http/wire/query.h>

#include <cstring>
#include <string_view>

#include "tests/support/ask.h"

namespace http_form_test {

namespace {

using namespace coir::http;
using coir::test::ask;
using coir::test::content_of;
using coir::test::status_of;

// greet answers with the decoded value of "name".
void greet(Exchange& exchange) {
  char memory[32];
  const auto form = read_form(exchange, memory);
  if (!form) return;
  char name[32];
  const auto value = query_value(*form, "name", name);
  exchange.respond(200, "text/plain", value ? *value : "nobody");
}

std::string_view post(std::string_view head_and_content) {
  static char request[1024];
  constexpr std::string_view start = "POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
  memcpy(request, start.data(), start.size());
  memcpy(request + start.size(), head_and_content.data(), head_and_content.size());
  return ask({.handler = greet}, {request, start.size() + head_and_content.size()});
}

}  // namespace

TEST_GROUP(HttpForm) {};

TEST(HttpForm, is_read_and_decoded) {
  const auto answer = post(
      "Content-Type: Application/X-WWW-form-urlencoded ; charset=utf-8\r\nContent-Length: 19\r\n\r\n"
      "a=1&name=J%C3%B6+B.");
  CHECK_EQUAL(200, status_of(answer));
  CHECK(content_of(answer) == "J\xc3\xb6 B.");
}

TEST(HttpForm, is_read_in_chunks) {
  const auto answer = post(
      "Content-Type: application/x-www-form-urlencoded\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nnam\r\n4\r\ne=Jo\r\n0\r\n\r\n");
  CHECK(content_of(answer) == "Jo");
}

TEST(HttpForm, of_the_memorys_size_fits) {
  const auto answer = post(
      "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 32\r\n\r\n"
      "a=1234567890123456789012&name=Jo");
  CHECK(content_of(answer) == "Jo");
}

TEST(HttpForm, that_is_longer_is_413) {
  CHECK_EQUAL(413, status_of(post("Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 33\r\n\r\n"
                                  "a=12345678901234567890123&name=Jo")));
  CHECK_EQUAL(413,
              status_of(post("Content-Type: application/x-www-form-urlencoded\r\nTransfer-Encoding: chunked\r\n\r\n"
                             "21\r\na=12345678901234567890123&name=Jo\r\n0\r\n\r\n")));
}

TEST(HttpForm, that_is_known_to_be_longer_is_not_asked_for) {
  const auto answer =
      post("Content-Type: application/x-www-form-urlencoded\r\nExpect: 100-continue\r\nContent-Length: 33\r\n\r\n");
  CHECK_EQUAL(413, status_of(answer));
}

TEST(HttpForm, of_another_type_or_of_none_is_415) {
  const auto answer = post("Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}");
  CHECK_EQUAL(415, status_of(answer));
  CHECK(answer.find("\r\nAccept: application/x-www-form-urlencoded\r\n") != answer.npos);
  CHECK_EQUAL(415, status_of(post("Content-Length: 6\r\n\r\nname=x")));
}

TEST(HttpForm, without_content_is_empty) {
  CHECK(content_of(post("Content-Type: application/x-www-form-urlencoded\r\n\r\n")) == "nobody");
}

TEST(HttpForm, whose_content_is_broken_is_answered_so) {
  CHECK_EQUAL(400,
              status_of(post("Content-Type: application/x-www-form-urlencoded\r\nTransfer-Encoding: chunked\r\n\r\n"
                             "x\r\n")));
}

TEST(HttpForm, a_media_type_is_compared_without_case_and_parameters) {
  CHECK(has_media_type("text/html", "text/html"));
  CHECK(has_media_type("Text/HTML ;charset=utf-8", "text/html"));
  CHECK_FALSE(has_media_type("text/htm", "text/html"));
  CHECK_FALSE(has_media_type("text/html2", "text/html"));
  CHECK_FALSE(has_media_type("", "text/html"));
}

}  // namespace http_form_test
