// The parser of heads of responses (net/src/http/message/response_parser.h).

#include "http/message/response_parser.h"

#include <CppUTest/TestHarness.h>

#include <string_view>
#include <utility>

namespace http_response_parser_test {

using namespace coir::http;
using namespace std::string_view_literals;

namespace {

struct Read {
  ResponseResult result;
  ParsedResponse response;
  Header fields[4];
  char head[512];
  explicit Read(std::string_view bytes, AnswerTo to = AnswerTo::other, std::size_t seen = 0) {
    const std::span<char> room(head, bytes.copy(head, sizeof head));
    result = parse_response(room, seen, fields, to, response);
  }
};

bool is_bad(std::string_view bytes) {
  return Read(bytes).result.state == ResponseState::bad;
}

}  // namespace

TEST_GROUP(HttpResponseParser) {};

TEST(HttpResponseParser, takes_a_head_apart) {
  const Read read("HTTP/1.1 206 Partial Content\r\nA: b \r\nContent-Length: 7\r\n\r\nxyz");
  CHECK(read.result.state == ResponseState::complete && read.result.head_bytes == 58);
  CHECK(read.response.status == 206 && read.response.reason == "Partial Content" && read.response.header("a") == "b");
  CHECK(read.response.end == ContentEnd::length && read.response.content_length == 7 && read.response.keep_alive);
}

TEST(HttpResponseParser, answers_the_same_however_the_head_is_cut) {
  constexpr std::string_view head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\nConnection: close\r\n\r\n";
  for (std::size_t cut = 0; cut < head.size(); ++cut) {
    CHECK(Read(head.substr(0, cut)).result.state == ResponseState::incomplete);
    const Read whole(head, AnswerTo::other, cut);
    CHECK(whole.result.state == ResponseState::complete && whole.response.end == ContentEnd::chunked);
    CHECK_FALSE(whole.response.keep_alive);
  }
}

TEST(HttpResponseParser, finds_the_end_of_content) {
  CHECK(Read("HTTP/1.1 200 OK\r\n\r\n").response.end == ContentEnd::close);
  CHECK(Read("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").response.end == ContentEnd::none);
  CHECK(Read("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", AnswerTo::head).response.end == ContentEnd::none);
  CHECK(Read("HTTP/1.1 204 No\r\n\r\n").response.end == ContentEnd::none);
  CHECK(Read("HTTP/1.1 304 No\r\nTransfer-Encoding: chunked\r\n\r\n").response.end == ContentEnd::none);
  CHECK(Read("HTTP/1.1 100 Go\r\n\r\n").response.end == ContentEnd::none);
}

TEST(HttpResponseParser, keeps_alive_as_version_and_connection_say) {
  const auto stays = [](std::string_view head) { return Read(head).response.keep_alive; };
  CHECK_TRUE(stays("HTTP/1.1 204 No\r\n\r\n"));
  CHECK_FALSE(stays("HTTP/1.0 204 No\r\n\r\n"));
  CHECK_TRUE(stays("HTTP/1.0 204 No\r\nConnection: keep-alive\r\n\r\n"));
  CHECK_FALSE(stays("HTTP/1.1 204 No\r\nConnection: x, Close\r\n\r\n"));
  CHECK_FALSE(stays("HTTP/1.1 200 OK\r\n\r\n"));
}

TEST(HttpResponseParser, refuses_what_is_no_head) {
  for (const std::string_view bad : {"H\n",
                                     "XTTP/1.1 200 OK\r\n\r\n",
                                     "HTTP/2.0 200 OK\r\n\r\n",
                                     "HTTP/1.1 20 OK\r\n\r\n",
                                     "HTTP/1.1 099 OK\r\n\r\n",
                                     "HTTP/1.1 1000 OK\r\n\r\n",
                                     "HTTP/1.1 200 OK\n\n",
                                     "HTTP/1.1 200 OK\r\nA: b\nC: d\r\n\r\n",
                                     "HTTP/1.1 200 OK\r\n\n",
                                     "HTTP/1.1 200OK\r\n\r\n",
                                     "HTTP/1.1  200 OK\r\n\r\n",
                                     "HTTP/1.1 200\tOK\r\n\r\n",
                                     "HTTP/1.1 200 O\x01K\r\n\r\n",
                                     "HTTP/1.1 200 O\rK\r\n\r\n",
                                     "HTTP/1.1 200 OK\r\n a: b\r\n\r\n",
                                     "HTTP/1.1 200 OK\r\nA: b\n c: d\r\n\r\n",
                                     "HTTP/1.1 200 OK\r\nA: b\r\n c: d\n e\r\n\r\n",
                                     "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n 2\r\n\r\n",
                                     "HTTP/1.1 200 OK\r\nA : b\r\n\r\n",
                                     "HTTP/1.1 200 OK\r\n: b\r\n\r\n",
                                     "HTTP/1.1 200 OK\r\nA: b\x01\r\n\r\n",
                                     "HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\n",
                                     "HTTP/1.1 200 OK\r\nContent-Length: \r\n\r\n",
                                     "HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775808\r\n\r\n",
                                     "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
                                     "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
                                     "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                                     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked,\r\n\r\n",
                                     "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"}) {
    CHECK_TEXT(is_bad(bad), bad.data());
  }
}

TEST(HttpResponseParser, takes_statuses_without_meaning_and_no_reason) {
  for (const auto& [head, status] : {std::pair("HTTP/1.1 600 OK\r\nContent-Length: 3\r\n\r\n"sv, 600),
                                     {"HTTP/1.1 999 No\r\nContent-Length: 3\r\n\r\n"sv, 999},
                                     {"HTTP/1.1 200 \r\nContent-Length: 3\r\n\r\n"sv, 200},
                                     {"HTTP/1.1 200\r\nContent-Length: 3\r\n\r\n"sv, 200}}) {
    for (std::size_t cut = 0; cut < head.size(); ++cut) {
      CHECK(Read(head.substr(0, cut)).result.state == ResponseState::incomplete);
      const Read whole(head, AnswerTo::other, cut);
      CHECK(whole.result.state == ResponseState::complete && whole.result.head_bytes == head.size());
      CHECK(whole.response.status == status && whole.response.content_length == 3);
    }
  }
}

TEST(HttpResponseParser, takes_a_head_that_is_a_status_alone) {
  constexpr std::string_view head = "HTTP/1.1 204\r\n\r\n";
  for (std::size_t cut = 0; cut < head.size(); ++cut) {
    CHECK(Read(head.substr(0, cut)).result.state == ResponseState::incomplete);
    const Read whole(head, AnswerTo::other, cut);
    CHECK(whole.result.state == ResponseState::complete && whole.response.reason.empty());
  }
}

// RFC 9112, 5.2: whoever takes a folded line puts blanks in its place.
TEST(HttpResponseParser, joins_folded_lines) {
  constexpr std::string_view head = "HTTP/1.1 200 OK\r\nA:\r\n one\r\n\ttwo \r\nContent-Length: 3\r\n\r\n";
  for (std::size_t cut = 0; cut < head.size(); ++cut) {
    CHECK(Read(head.substr(0, cut)).result.state == ResponseState::incomplete);
    const Read whole(head, AnswerTo::other, cut);
    CHECK(whole.result.state == ResponseState::complete && whole.result.head_bytes == head.size());
    CHECK(whole.response.headers.size() == 2 && whole.response.content_length == 3);
    CHECK(whole.response.header("a") == "one  \ttwo");
  }
  CHECK(Read("HTTP/1.1 200 OK\r\nTransfer-Encoding:\r\n chunked\r\n\r\n").response.end == ContentEnd::chunked);
}

// RFC 9110, 9.3.6: behind the consent to CONNECT the tunnel begins, whatever the fields say.
TEST(HttpResponseParser, a_consent_to_connect_has_no_content) {
  constexpr std::string_view head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n";
  const Read read(head, AnswerTo::connect);
  CHECK(read.result.state == ResponseState::complete && read.response.end == ContentEnd::none);
  CHECK(Read(head, AnswerTo::head).result.state == ResponseState::bad);
  CHECK(Read("HTTP/1.1 403 No\r\nContent-Length: 3\r\n\r\n", AnswerTo::connect).response.end == ContentEnd::length);
}

TEST(HttpResponseParser, tells_too_many_fields_from_bad_ones) {
  CHECK(Read("HTTP/1.1 200 OK\r\nA: 1\r\nB: 2\r\nC: 3\r\nD: 4\r\n\r\n").result.state == ResponseState::complete);
  CHECK(Read("HTTP/1.1 200 OK\r\nA: 1\r\nB: 2\r\nC: 3\r\nD: 4\r\nE: 5\r\n\r\n").result.state ==
        ResponseState::too_many_fields);
}

}  // namespace http_response_parser_test
