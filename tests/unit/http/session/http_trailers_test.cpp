// Fields behind chunked content, both ways.

#include <CppUTest/TestHarness.h>
#include <coir/http/server.h>
#include <string.h>

#include <string_view>

#include "tests/support/ask.h"

namespace http_trailers_test {

namespace {

using namespace coir::http;
using namespace std::string_view_literals;
using coir::Error;
using coir::ErrorCode;
using coir::test::ask;
using coir::test::content_of;
using coir::test::status_of;

// echo answers with two trailer fields, before the content has been read and behind it.
void echo(Exchange& exchange) {
  char text[200];
  std::size_t size = 0;
  const auto add = [&](std::string_view piece) {
    if (piece.data() == nullptr) piece = "(none)";
    memcpy(text + size, piece.data(), piece.size());
    size += piece.size();
    text[size++] = ';';
  };
  add(exchange.trailer("Digest"));
  char piece[7];
  for (;;) {
    const auto got = exchange.read_body(piece);
    if (got) continue;
    if (got.error() != ErrorCode::end_of_stream) return;
    break;
  }
  add(exchange.trailer("digest"));
  add(exchange.trailer("X-Other"));
  exchange.respond(200, "text/plain", {text, size});
}

struct Outcome {
  ErrorCode before{}, first{}, bad_name{}, bad_value{}, large{};
};

ErrorCode code_of(const std::expected<void, Error>& done) {
  return done ? ErrorCode{} : done.error().code;
}

// tell answers in chunks, with a trailer.
void tell(Outcome& outcome, Exchange& exchange) {
  outcome.before = code_of(exchange.add_trailer("X-Sum", "1"));
  exchange.add_fields("X-Added: yes\r\n");
  exchange.start(200);
  if (!exchange.begin_chunked() || !exchange.write("hello")) return;
  outcome.first = code_of(exchange.add_trailer("X-Sum", "42"));
  outcome.bad_name = code_of(exchange.add_trailer("X Sum", "42"));
  outcome.bad_value = code_of(exchange.add_trailer("X-Sum", "a\r\nX-Forged: 1"));
  static char large[Exchange::kAddedFieldBytes];
  memset(large, 'x', sizeof large);
  outcome.large = code_of(exchange.add_trailer("X-Large", {large, sizeof large}));
  static_cast<void>(exchange.add_trailer("X-Last", ""));
}

constexpr std::string_view kPost =
    "POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n";

}  // namespace

TEST_GROUP(HttpTrailers) {
  char said[4096];
  Outcome outcome;

  std::string_view post(std::string_view trailers) {
    memcpy(said, kPost.data(), kPost.size());
    memcpy(said + kPost.size(), trailers.data(), trailers.size());
    return ask({.handler = echo}, {said, kPost.size() + trailers.size()});
  }
};

TEST(HttpTrailers, a_handler_reads_them_once_the_content_has_ended) {
  CHECK_TRUE(content_of(post("Digest:  abc \r\nX-Other:\r\nDigest: second\r\n\r\n")) == "(none);abc;;");
  CHECK_TRUE(content_of(post("\r\n")) == "(none);(none);(none);");
  CHECK_TRUE(content_of(post("Digestion: no\r\n\r\n")) == "(none);(none);(none);");
}

TEST(HttpTrailers, one_byte_at_a_time_they_are_the_same) {
  constexpr std::string_view trailers = "Digest: abc\r\nX-Other: x\r\n\r\n";
  static char heard[1000];
  static std::string_view answer;
  coir::test::with_server({.handler = echo}, [&](coir::test::Asker& asker) {
    for (const char& c : kPost) asker.expectations.expect(asker.say({&c, 1}));
    for (const char& c : trailers) asker.expectations.expect(asker.say({&c, 1}));
    answer = asker.hear(heard);
  });
  CHECK_TRUE(content_of(answer) == "(none);abc;x;");
}

TEST(HttpTrailers, the_next_request_of_a_connection_does_not_see_them) {
  constexpr std::string_view kKept =
      "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nDigest: abc\r\n\r\n";
  memcpy(said, kKept.data(), kKept.size());
  memcpy(said + kKept.size(), kPost.data(), kPost.size());
  memcpy(said + kKept.size() + kPost.size(), "\r\n", 2);
  const std::string_view answer = ask({.handler = echo}, {said, kKept.size() + kPost.size() + 2});
  CHECK_TRUE(answer.find("(none);abc;(none);") != answer.npos);
  CHECK_TRUE(answer.ends_with("(none);(none);(none);"));
}

TEST(HttpTrailers, a_request_without_content_has_none_of_the_one_before) {
  constexpr std::string_view kBoth =
      "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nDigest: abc\r\n\r\n"
      "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
  const std::string_view answer = ask({.handler = echo}, kBoth);
  CHECK_TRUE(answer.find("(none);abc;(none);") != answer.npos);
  CHECK_TRUE(answer.ends_with("(none);(none);(none);"));
}

TEST(HttpTrailers, more_than_there_is_room_for_are_431) {
  static char field[Exchange::kTrailerBytes + 40] = "X: ";
  memset(field + 3, 'x', sizeof field - 3);
  memcpy(field + Exchange::kTrailerBytes + 20, "\r\n\r\n", 4);
  LONGS_EQUAL(431, status_of(post({field, Exchange::kTrailerBytes + 24})));
  memcpy(field + 900, "\r\n\r\n", 4);
  LONGS_EQUAL(200, status_of(post({field, 904})));
}

TEST(HttpTrailers, a_client_that_wants_them_is_sent_them_behind_the_last_chunk) {
  const std::string_view answer =
      ask({.handler = [this](Exchange& exchange) { tell(outcome, exchange); }},
          "GET / HTTP/1.1\r\nHost: localhost\r\nTE: gzip, Trailers\r\nConnection: close, TE\r\n\r\n");
  CHECK_TRUE(answer.find("X-Added: yes\r\n") != answer.npos);
  CHECK_TRUE(content_of(answer) == "5\r\nhello\r\n0\r\nX-Sum: 42\r\nX-Last: \r\n\r\n");
  CHECK_TRUE(outcome.before == ErrorCode::invalid && outcome.first == ErrorCode{});
  CHECK_TRUE(outcome.bad_name == ErrorCode::invalid && outcome.bad_value == ErrorCode::invalid);
  CHECK_TRUE(outcome.large == ErrorCode::limit);
}

TEST(HttpTrailers, one_that_does_not_want_them_is_not) {
  for (const std::string_view request : {"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"sv,
                                         "GET / HTTP/1.0\r\nTE: trailers\r\n\r\n"sv}) {
    const std::string_view answer = ask({.handler = [this](Exchange& exchange) { tell(outcome, exchange); }}, request);
    CHECK_TRUE(answer.find("X-Sum") == answer.npos);
    CHECK_TRUE(outcome.first == ErrorCode::unsupported);
  }
  const std::string_view head = ask({.handler = [this](Exchange& exchange) { tell(outcome, exchange); }},
                                    "HEAD / HTTP/1.1\r\nHost: localhost\r\nTE: trailers\r\nConnection: close\r\n\r\n");
  CHECK_TRUE(head.ends_with("\r\n\r\n") && head.find("X-Sum") == head.npos);
}

}  // namespace http_trailers_test
