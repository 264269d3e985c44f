// Events as bytes: each field's form, line ends in data, what is refused, and that a parser reads back what was sent.

#include <CppUTest/TestHarness.h>

#include <cstdlib>
#include <cstring>
#include <string_view>

#include "net/src/stream/event_encoder.h"
#include "net/src/stream/event_parser.h"
#include "tests/support/random.h"

namespace event_encoder_test {

namespace {

using namespace coir::http;
using namespace std::string_view_literals;

// encodes checks an event's bytes, their number, and that they fit in just that many and in no fewer.
void encodes(const ServerEvent& event, std::string_view wanted) {
  LONGS_EQUAL(wanted.size(), encoded_bytes(event));
  char* const exact = static_cast<char*>(malloc(wanted.size()));
  const auto written = encode_event(event, {exact, wanted.size()});
  CHECK_TRUE(written.has_value());
  STRNCMP_EQUAL(wanted.data(), written->data(), wanted.size());
  CHECK_TRUE(*written == wanted);
  for (std::size_t size = 0; size < wanted.size(); ++size) {
    CHECK_TRUE(encode_event(event, {exact, size}).error() == coir::ErrorCode::limit);
  }
  free(exact);
}

// reads_back checks that a receiver gets the event's data with each line end as LF, its type and its id.
void reads_back(const ServerEvent& event) {
  char bytes[512];
  const auto written = encode_event(event, bytes);
  CHECK_TRUE(written.has_value());
  std::string_view left = *written;
  char buffer[1024];
  EventParser parser;
  const ParsedEvent parsed = parser.parse(left, buffer, sizeof buffer);
  CHECK_TRUE(parsed.state == EventState::event && left.empty());
  CHECK_TRUE(parsed.event.type == event.type && parsed.event.id == event.id);
  std::size_t at = 0;
  for (std::size_t i = 0; i < event.data.size(); ++i) {
    char c = event.data[i];
    if (c == '\r') {
      if (i + 1 < event.data.size() && event.data[i + 1] == '\n') ++i;
      c = '\n';
    }
    CHECK_TRUE(at < parsed.event.data.size() && parsed.event.data[at] == c);
    ++at;
  }
  LONGS_EQUAL(at, parsed.event.data.size());
}

}  // namespace

TEST_GROUP(EventEncoder) {};

TEST(EventEncoder, each_field_has_its_line) {
  encodes({.data = "hello"}, "data: hello\n\n");
  encodes({.data = "21", .type = "degrees", .id = "7", .retry_ms = 1500},
          "id: 7\nevent: degrees\nretry: 1500\ndata: 21\n\n");
  encodes({.data = "x", .retry_ms = 4294967295u}, "retry: 4294967295\ndata: x\n\n");
  encodes({.data = "x", .retry_ms = 0}, "retry: 0\ndata: x\n\n");
}

TEST(EventEncoder, the_id_stands_where_it_is_looked_for) {
  char memory[64];
  const auto written = encode_event({.data = "x", .type = "t", .id = "seven"}, memory);
  CHECK_TRUE(std::string_view(written->data() + kEventIdAt, 5) == "seven");
}

TEST(EventEncoder, absent_and_empty_are_told_apart) {
  encodes({.data = ""}, "data: \n\n");
  encodes({.id = ""}, "id: \n\n");
  encodes({.id = "7"}, "id: 7\n\n");
  encodes({.data = "x", .type = ""}, "data: x\n\n");
  encodes({.retry_ms = 3}, "retry: 3\n\n");
}

TEST(EventEncoder, each_line_of_data_has_a_line_of_its_own) {
  encodes({.data = "a\nb"}, "data: a\ndata: b\n\n");
  encodes({.data = "a\rb"}, "data: a\ndata: b\n\n");
  encodes({.data = "a\r\nb"}, "data: a\ndata: b\n\n");
  encodes({.data = "a\n\rb"}, "data: a\ndata: \ndata: b\n\n");
  encodes({.data = "\n"}, "data: \ndata: \n\n");
  encodes({.data = "a\n"}, "data: a\ndata: \n\n");
  encodes({.data = "\r\n\r\n"}, "data: \ndata: \ndata: \n\n");
  encodes({.data = "id: 1\n\nevent: no"}, "data: id: 1\ndata: \ndata: event: no\n\n");
  encodes({.data = "\0"sv}, "data: \0\n\n"sv);
}

TEST(EventEncoder, ids_with_nul_or_line_ends_are_refused) {
  char memory[64];
  for (const std::string_view id : {"\0"sv, "a\0b"sv, "a\nb"sv, "a\rb"sv, "a\r\n"sv, "\n"sv}) {
    CHECK_FALSE(is_event({.data = "x", .id = id}));
    CHECK_TRUE(encode_event({.data = "x", .id = id}, memory).error() == coir::ErrorCode::invalid);
  }
}

TEST(EventEncoder, types_with_line_ends_are_refused) {
  char memory[64];
  for (const std::string_view type : {"a\nb"sv, "a\rb"sv, "\r\n"sv}) {
    CHECK_FALSE(is_event({.data = "x", .type = type}));
    CHECK_TRUE(encode_event({.data = "x", .type = type}, memory).error() == coir::ErrorCode::invalid);
  }
}

TEST(EventEncoder, the_comment_that_keeps_a_stream_open_is_dropped_by_receivers) {
  char buffer[64];
  EventParser parser;
  std::string_view left = kKeepAlive;
  CHECK_TRUE(parser.parse(left, buffer, sizeof buffer).state == EventState::more);
}

TEST(EventEncoder, a_sent_event_is_read_back) {
  reads_back({.data = " leading and trailing ", .type = " t", .id = " i"});
  reads_back({.data = "a\r\n\r\nb\rc\n", .type = "\xe2\x82\xac", .id = ":"});
  reads_back({.data = "\0"sv, .type = "a\0b"sv});
  reads_back({.data = ""});
}

TEST(EventEncoder, random_data_is_read_back) {
  coir::test::Random random{0xe7e27};
  for (int i = 0; i < 2000; ++i) {
    char data[60];
    const std::uint32_t size = random.below(sizeof data);
    for (std::uint32_t at = 0; at < size; ++at) data[at] = "\r\n\n: xyz"[random.below(8)];
    reads_back({.data = {data, size}, .type = "t", .id = "1"});
  }
}

}  // namespace event_encoder_test
