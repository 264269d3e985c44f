// Records of FastCGI, and the heads that scripts write.

#include <CppUTest/TestHarness.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "net/src/fastcgi/record.h"
#include "net/src/fastcgi/response_head.h"

namespace fastcgi_records_test {

using namespace coir::http;

namespace {

// joined makes one of parts by what a program without the C++ library has of strings.
std::string joined(std::initializer_list<std::string_view> parts) {
  std::size_t size = 0;
  for (const std::string_view part : parts) size += part.size();
  std::string whole(size, '\0');
  char* at = whole.data();
  for (const std::string_view part : parts) at = std::copy(part.begin(), part.end(), at);
  return whole;
}

std::string record(FastCgiType type, std::string_view content, std::uint16_t id = 7, std::size_t padding = 0) {
  char head[kFastCgiHeader];
  write_fastcgi_header(head, type, id, content.size());
  head[6] = static_cast<char>(padding);
  return joined({{head, sizeof head}, content, std::string(padding, 'p')});
}

std::string end_record(char protocol_status = 0, std::uint16_t id = 7) {
  const char content[8] = {0, 0, 0, 0, protocol_status};
  return record(FastCgiType::end_request, {content, sizeof content}, id);
}

struct Heard {
  std::vector<char> output, errors;
  std::string_view said() const { return {output.data(), output.size()}; }
  std::string_view complained() const { return {errors.data(), errors.size()}; }
  int ends = 0;
  FastCgiEnd end = FastCgiEnd::complete;
  bool bad = false;
  std::string behind;
};

// hear has a reader read `bytes` in pieces of that size, up to the end of its request.
Heard hear(std::string bytes, std::size_t piece) {
  Heard heard;
  FastCgiReader reader(7);
  for (std::size_t at = 0; at < bytes.size() && !heard.bad; at += piece) {
    std::span<char> rest(bytes.data() + at, std::min(piece, bytes.size() - at));
    for (bool more = true; more;) {
      const FastCgiEvent event = reader.next(rest);
      switch (event.kind) {
        case FastCgiEvent::Kind::none:
          more = false;
          break;
        case FastCgiEvent::Kind::output:
          heard.output.insert(heard.output.end(), event.bytes.begin(), event.bytes.end());
          break;
        case FastCgiEvent::Kind::errors:
          heard.errors.insert(heard.errors.end(), event.bytes.begin(), event.bytes.end());
          break;
        case FastCgiEvent::Kind::ended:
          ++heard.ends;
          heard.end = event.end;
          heard.behind = std::string(rest.data(), rest.size());
          break;
        case FastCgiEvent::Kind::bad:
          heard.bad = true;
          more = false;
          break;
      }
    }
  }
  return heard;
}

struct Head {
  ScriptHead::State state = ScriptHead::State::incomplete;
  ResponseState parsed = ResponseState::bad;
  ParsedResponse response;
  std::string behind;
  char memory[512];
  Header fields[16];
};

// take gathers a head in pieces of that size.
void take(std::string text, Head& into, std::size_t piece = 1000, bool no_content = false) {
  ScriptHead head(into.memory);
  for (std::size_t at = 0; at < text.size() && into.state == ScriptHead::State::incomplete; at += piece) {
    std::span<char> rest(text.data() + at, std::min(piece, text.size() - at));
    into.state = head.take(rest);
    into.behind = std::string(rest.data(), rest.size());
  }
  if (into.state == ScriptHead::State::whole)
    into.parsed = head.parse(into.fields, no_content ? AnswerTo::head : AnswerTo::other, into.response);
}

int status_of(std::string_view text) {
  Head head;
  take(std::string(text), head);
  return head.parsed == ResponseState::complete ? head.response.status : 0;
}

}  // namespace

TEST_GROUP(FastCgiRecords) {};

TEST(FastCgiRecords, of_any_size_and_padding_are_read_however_they_are_cut) {
  const std::string large(65'535, 'x'),
      bytes = joined({record(FastCgiType::output, "hello, ", 7, 3), record(FastCgiType::errors, "oh", 7, 255),
                      record(FastCgiType::output, large, 7, 1), record(FastCgiType::output, ""),
                      record(FastCgiType::errors, ""), end_record()});
  for (const std::size_t piece : {std::size_t{1}, std::size_t{2}, std::size_t{7}, std::size_t{8}, std::size_t{9},
                                  std::size_t{4096}, bytes.size()}) {
    const Heard heard = hear(bytes, piece);
    CHECK(heard.said() == joined({"hello, ", large}) && heard.complained() == "oh");
    CHECK(heard.ends == 1 && heard.end == FastCgiEnd::complete && !heard.bad);
  }
}

TEST(FastCgiRecords, those_of_other_requests_and_types_are_left_out) {
  const Heard heard =
      hear(joined({end_record(0, 6), record(FastCgiType::output, "stale", 6),
                   record(static_cast<FastCgiType>(10), "values", 0), record(FastCgiType::output, "own"),
                   record(static_cast<FastCgiType>(99), "?"), end_record(2)}),
           1000);
  CHECK(heard.said() == "own" && heard.ends == 1 && heard.end == FastCgiEnd::overloaded);
}

TEST(FastCgiRecords, records_behind_an_end_are_told_apart) {
  CHECK(hear(joined({end_record(), "stray"}), 1000).behind == "stray");
  // Padding is the end's own.
  std::string padded = end_record();
  padded[6] = 5;
  CHECK(hear(joined({padded, "ppppp"}), 1000).behind.empty());
  CHECK_EQUAL(0, hear(joined({padded, "pppp"}), 1000).ends);
}

TEST(FastCgiRecords, another_version_and_an_end_of_the_wrong_size_are_bad) {
  std::string other = record(FastCgiType::output, "x");
  other[0] = 2;
  CHECK(hear(other, 1000).bad);
  CHECK(hear(record(FastCgiType::end_request, "short"), 1).bad);
  CHECK(hear(record(FastCgiType::end_request, "much too long"), 1).bad);
  CHECK(hear(end_record(9), 1000).bad);
}

TEST(FastCgiRecords, lengths_of_128_and_more_take_four_bytes) {
  char memory[1000];
  for (const std::size_t size : {std::size_t{0}, std::size_t{127}, std::size_t{128}, std::size_t{300}}) {
    FastCgiParams params(memory);
    params.add(std::string(size, 'n'), std::string(size, 'v'));
    const std::size_t each = size < 128 ? 1 : 4;
    CHECK_EQUAL(2 * (each + size), params.size());
    if (each == 1) {
      CHECK_EQUAL(static_cast<int>(size), memory[0]);
    } else {
      const std::string_view length(memory, 4);
      CHECK(length == std::string_view("\x80\0\0\x80", 4) || length == std::string_view("\x80\0\1\x2c", 4));
    }
  }
}

TEST(FastCgiRecords, a_value_in_parts_is_one_and_what_does_not_fit_is_told) {
  char memory[20];
  FastCgiParams params(memory);
  params.begin("N");
  params.append("ab");
  params.append("c");
  params.end();
  CHECK(params.fits() && std::string_view(memory, params.size()) == std::string_view("\1\x80\0\0\3Nabc", 9));
  params.add("long", "0123456789");
  params.add("a", "b");
  CHECK(!params.fits());
}

TEST_GROUP(ScriptHead) {};

TEST(ScriptHead, lines_may_end_as_the_script_likes) {
  for (const std::string_view text :
       {"Content-Type: a/b\nX-Own: 1\n\nrest", "Content-Type: a/b\r\nX-Own: 1\r\n\r\nrest",
        "Content-Type: a/b\r\nX-Own: 1\n\r\nrest"}) {
    for (std::size_t piece = 1; piece < 40; ++piece) {
      Head head;
      take(std::string(text), head, piece);
      CHECK(head.parsed == ResponseState::complete);
      CHECK(head.response.header("Content-Type") == "a/b" && head.response.header("X-Own") == "1");
      CHECK(head.response.status == 200 && head.response.end == ContentEnd::close);
      CHECK(std::string_view("rest").starts_with(head.behind));
    }
  }
}

TEST(ScriptHead, status_is_the_scripts_own_else_302_for_a_location_else_200) {
  CHECK_EQUAL(404, status_of("Status: 404 Not Found\n\n"));
  CHECK_EQUAL(503, status_of("Status: 503\n\n"));
  CHECK_EQUAL(302, status_of("Location: /elsewhere\n\n"));
  CHECK_EQUAL(301, status_of("Status: 301 Moved\nLocation: /elsewhere\n\n"));
  CHECK_EQUAL(200, status_of("Content-Type: a/b\n\n"));
}

TEST(ScriptHead, no_head_at_all_and_statuses_that_are_none_are_bad) {
  for (const std::string_view text :
       {"\n", "\r\n\r\n", "hello\n\n", "HTTP/1.1 200 OK\n\n", "Status: 99\n\n", "Status: 100\n\n", "Status: 101 Go\n\n",
        "Status: 600\n\n", "Status: abc\n\n", "Status: 2000\n\n", "A B: c\n\n", "Content-Length: x\n\n",
        "Content-Length: 1\nContent-Length: 2\n\n", "X: a\rb\n\n"}) {
    CHECK_EQUAL_TEXT(0, status_of(text), std::string(text).c_str());
  }
}

TEST(ScriptHead, a_record_frames_and_a_coding_does_not) {
  Head head;
  take("Transfer-Encoding: chunked\n\n", head);
  CHECK(head.parsed == ResponseState::complete && head.response.end == ContentEnd::close);
  Head fixed;
  take("Content-Length: 12\n\n", fixed);
  CHECK(fixed.response.end == ContentEnd::length && fixed.response.content_length == 12);
}

TEST(ScriptHead, one_that_is_too_long_can_go_on_in_larger_memory) {
  char small[64], large[256];
  ScriptHead head(small);
  std::string text = joined({"X-Long: ", std::string(100, 'x'), "\n\n"});
  std::span<char> rest(text);
  CHECK(head.take(rest) == ScriptHead::State::too_long);
  head.move(large);
  CHECK(head.take(rest) == ScriptHead::State::whole && rest.empty());
  Header fields[4];
  ParsedResponse response;
  CHECK(head.parse(fields, AnswerTo::other, response) == ResponseState::complete);
  CHECK(response.header("X-Long") == std::string(100, 'x'));
}

TEST(ScriptHead, one_with_more_fields_than_there_is_room_for_is_not_bad) {
  char memory[256];
  ScriptHead head(memory);
  std::string text = "A: 1\nB: 2\nC: 3\nD: 4\nE: 5\n\n";
  std::span<char> rest(text);
  CHECK(head.take(rest) == ScriptHead::State::whole);
  Header fields[5];
  ParsedResponse response;
  CHECK(head.parse(std::span(fields).first(4), AnswerTo::other, response) == ResponseState::too_many_fields);
  CHECK(head.parse(fields, AnswerTo::other, response) == ResponseState::complete);
  CHECK(response.header("E") == "5");
}

}  // namespace fastcgi_records_test
