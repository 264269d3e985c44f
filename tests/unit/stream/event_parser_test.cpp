// Event streams by WHATWG's rules, each of the Web Platform Tests' cases under its name, and what that suite does not
// ask: ceilings, resumption, text that is not UTF-8. Each stream is read whole, in steps, and cut in two at each byte.

#include <CppUTest/TestHarness.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "net/src/stream/event_parser.h"

namespace event_parser_test {

namespace {

using namespace coir::http;
using namespace std::string_view_literals;

constexpr std::size_t kMostLine = 4096;

// Reader is a parser with a buffer of its own size, and what it told: for each event "type|id|data;", and "LIMIT" where
// a ceiling was met.
class Reader {
 public:
  explicit Reader(std::size_t buffer = 4096, std::size_t max_line = kMostLine)
      : buffer_(static_cast<char*>(malloc(buffer))), buffer_bytes_(buffer), max_line_(max_line) {}
  ~Reader() { free(buffer_); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  void read(std::string_view piece) {
    char* const exact = static_cast<char*>(malloc(piece.size() + 1));
    memcpy(exact + 1, piece.data(), piece.size());
    std::string_view bytes(exact + 1, piece.size());
    for (;;) {
      const ParsedEvent parsed = parser.parse(bytes, {buffer_, buffer_bytes_}, max_line_);
      if (parsed.state == EventState::more) CHECK_TRUE(bytes.empty());
      if (parsed.state == EventState::limit && !failed_) put("LIMIT");
      failed_ = parsed.state == EventState::limit;
      if (parsed.state != EventState::event) break;
      CHECK_TRUE(parsed.event.id == parser.last_id({buffer_, buffer_bytes_}));
      put(parsed.event.type);
      put("|");
      put(parsed.event.id);
      put("|");
      put(parsed.event.data);
      put(";");
    }
    free(exact);
  }
  void restart() { parser.restart({buffer_, buffer_bytes_}); }
  bool set_last_id(std::string_view id) { return parser.set_last_id(id, {buffer_, buffer_bytes_}); }
  std::string_view last_id() const { return parser.last_id({buffer_, buffer_bytes_}); }
  std::string_view told() const { return {told_, told_bytes_}; }

  EventParser parser;

 private:
  void put(std::string_view text) {
    CHECK_TRUE(told_bytes_ + text.size() <= sizeof told_);
    if (!text.empty()) memcpy(told_ + told_bytes_, text.data(), text.size());
    told_bytes_ += text.size();
  }

  char* buffer_;
  std::size_t buffer_bytes_;
  std::size_t max_line_;
  bool failed_ = false;
  char told_[8192];
  std::size_t told_bytes_ = 0;
};

// tells checks what a stream tells, however it is cut.
void tells(std::string_view stream, std::string_view wanted, std::size_t buffer = 4096,
           std::size_t max_line = kMostLine) {
  {
    Reader whole(buffer, max_line);
    whole.read(stream);
    STRNCMP_EQUAL(wanted.data(), whole.told().data(), wanted.size());
    CHECK_TRUE(whole.told() == wanted);
  }
  for (const std::size_t step : {1, 2, 3, 5}) {
    Reader slow(buffer, max_line);
    for (std::size_t at = 0; at < stream.size(); at += step) {
      slow.read({stream.data() + at, step < stream.size() - at ? step : stream.size() - at});
    }
    CHECK_TRUE(slow.told() == wanted);
  }
  for (std::size_t cut = 1; cut < stream.size(); ++cut) {
    Reader halves(buffer, max_line);
    halves.read({stream.data(), cut});
    halves.read({stream.data() + cut, stream.size() - cut});
    if (halves.told() != wanted) LONGS_EQUAL(-1, cut);
  }
}

// Long is a text of one character.
template <std::size_t kSize>
struct Long {
  explicit Long(const char* format) {
    char filler[kSize + 1];
    memset(filler, 'x', kSize);
    filler[kSize] = '\0';
    size = static_cast<std::size_t>(snprintf(bytes, sizeof bytes, format, filler, filler));
  }
  operator std::string_view() const { return {bytes, size}; }

  std::size_t size;
  char bytes[2 * kSize + 200];
};

}  // namespace

TEST_GROUP(EventParser) {};

// The Web Platform Tests' cases, by name.

TEST(EventParser, format_bom) {
  tells(
      "\xef\xbb\xbf"
      "data:1\n\n\xef\xbb\xbf"
      "data:2\n\ndata:3\n\n",
      "||1;||3;");
}

TEST(EventParser, format_bom_2) {
  tells(
      "\xef\xbb\xbf\xef\xbb\xbf"
      "data:1\n\ndata:2\n\ndata:3\n\n",
      "||2;||3;");
}

TEST(EventParser, format_comments) {
  const Long<2048> stream("data:1\r:\n:\r\ndata:2\n:%s\rdata:3\n:data:fail\r:%s\ndata:4\n\n");
  Reader reader(64, 4096);
  reader.read(stream);
  CHECK_TRUE(reader.told() == "||1\n2\n3\n4;");
  tells("data:1\r:\0\n:\r\ndata:2\n:x\rdata:3\n:data:fail\r:x\ndata:4\n\n"sv, "||1\n2\n3\n4;");
}

TEST(EventParser, format_data_before_final_empty_line) {
  tells("retry:1000\ndata:test1\n\nid:test\ndata:test2", "||test1;");
  tells("data:test1\n\nid:test\ndata:test2\n", "||test1;");
  Reader reader;
  reader.read("retry:1000\ndata:test1\n\nid:test\ndata:test2");
  reader.restart();
  CHECK_TRUE(reader.last_id().empty());
  reader.read("data:test3\n\n");
  CHECK_TRUE(reader.told() == "||test1;||test3;");
}

TEST(EventParser, format_field_data) {
  tells("data:\n\ndata\ndata\n\ndata:test\n\n", "||;||\n;||test;");
}

TEST(EventParser, format_field_event) {
  tells("event:test\ndata:x\n\ndata:x\n\n", "test||x;||x;");
}

TEST(EventParser, format_field_event_empty) {
  tells("event: \ndata:data\n\n", "||data;");
  tells("event:test\nevent\ndata:data\n\n", "||data;");
}

TEST(EventParser, format_field_id) {
  Reader reader;
  reader.read("id: \xe2\x80\xa6\ndata:1\n\n");
  reader.restart();
  CHECK_TRUE(reader.last_id() == "\xe2\x80\xa6");
}

TEST(EventParser, format_field_id_2) {
  tells("id: 1\ndata:hello\n\ndata:kept\n\nid: 2\ndata:new\n\n", "|1|hello;|1|kept;|2|new;");
}

TEST(EventParser, format_field_id_3) {
  tells("id: 1\ndata:hello\n\nid\ndata:reset\n\ndata:still\n\n", "|1|hello;||reset;||still;");
}

TEST(EventParser, format_field_id_null) {
  tells(
      "id: 1\ndata:a\n\nid: \0\0\ndata:b\n\nid:x\0\ndata:c\n\nid:\0x\ndata:d\n\nid:x\0x\ndata:e\n\nid: \0\ndata:f\n\n"sv,
      "|1|a;|1|b;|1|c;|1|d;|1|e;|1|f;");
}

TEST(EventParser, format_field_parsing) {
  tells(
      "data:\0\ndata:  2\rData:1\ndata\0:2\ndata:1\r\0data:4\nda-ta:3\rdata_5\ndata:3\rdata:\r\n data:32\ndata:4\n\n"sv,
      "||\0\n 2\n1\n3\n\n4;"sv);
}

TEST(EventParser, format_field_retry) {
  Reader reader;
  CHECK_FALSE(reader.parser.retry_ms().has_value());
  reader.read("retry:3000\n");
  LONGS_EQUAL(3000, reader.parser.retry_ms().value_or(0));
}

TEST(EventParser, format_field_retry_bogus) {
  for (const std::string_view bogus :
       {"1000x"sv, "x"sv, "-1"sv, "+1"sv, "1 "sv, " 1"sv, "1.5"sv, "0x10"sv, "1\0"sv, "\xd9\xa1"sv}) {
    Reader reader;
    reader.read("retry:3000\nretry: ");
    reader.read(bogus);
    reader.read("\n\n");
    LONGS_EQUAL(3000, reader.parser.retry_ms().value_or(0));
  }
}

TEST(EventParser, format_field_retry_empty) {
  Reader reader;
  reader.read("retry:3000\nretry\nretry:\nretry: \ndata:test\n\n");
  LONGS_EQUAL(3000, reader.parser.retry_ms().value_or(0));
  CHECK_TRUE(reader.told() == "||test;");
}

TEST(EventParser, format_field_unknown) {
  tells("data:test\n data\ndata\nfoobar:xxx\njustsometext\n:thisisacommentyay\ndata:test\n\n", "||test\n\ntest;");
}

TEST(EventParser, format_leading_space) {
  tells("data:\ttest\rdata: \ndata:test\n\n", "||\ttest\n\ntest;");
  tells("data:  two\n\n", "|| two;");
}

TEST(EventParser, format_newlines) {
  tells("data:test\r\ndata\ndata:test\r\n\r\n", "||test\n\ntest;");
  tells("data:1\n\ndata:2\r\rdata:3\r\n\r\ndata:4\r\n\rdata:5\n\r\ndata:6\r\n\n", "||1;||2;||3;||4;||5;||6;");
}

TEST(EventParser, format_null_character) {
  tells("data:\0\n\n\n\n"sv, "||\0;"sv);
}

TEST(EventParser, format_utf_8) {
  tells("data:ok\xe2\x80\xa6\n\n", "||ok\xe2\x80\xa6;");
}

// Cases that are not in that suite.

TEST(EventParser, a_mark_cut_off_is_text) {
  tells(
      "\xef\xbb"
      "data:1\n\ndata:2\n\n",
      "||2;");
  tells(
      "\xef"
      "\n\ndata:2\n\n",
      "||2;");
  tells(
      "data:\xef\xbb\xbf"
      "1\n\n",
      "||\xef\xbb\xbf"
      "1;");
  tells("\xef\xbb\xbf:comment\ndata:1\n\n", "||1;");
  tells("\xef\xbb\xbf\ndata:1\n\n", "||1;");
  tells("\xef\xbb\xbf\r\ndata:1\n\n", "||1;");
}

TEST(EventParser, an_event_is_told_at_a_cr_without_waiting_for_its_lf) {
  Reader reader;
  reader.read("data:1\r\n\r");
  CHECK_TRUE(reader.told() == "||1;");
  reader.read("\ndata:2\n\n");
  CHECK_TRUE(reader.told() == "||1;||2;");
}

TEST(EventParser, bytes_that_are_no_text_become_replacement_characters) {
  constexpr std::string_view r = "\xef\xbf\xbd";
  struct {
    std::string_view bytes;
    int replaced;
    std::string_view rest;
  } const kVectors[] = {
      {"\xff", 1, ""},
      {"\xc0\xaf", 2, ""},
      {"\xe2\x82", 1, ""},
      {"\xe2\x82(", 1, "("},
      {"\xf0\x9f\xa5", 1, ""},
      {"\xf0\x9f\xa5z", 1, "z"},
      {"\xed\xa0\x80", 3, ""},
      {"\xf4\x90\x80\x80", 4, ""},
      {"\xf0\x80\x80\x80", 4, ""},
      {"\xc3\xc3\xa4", 1, "\xc3\xa4"},
      {"\x80\x80", 2, ""},
      {"\xe1\x80\xe1\x80\x80", 1, "\xe1\x80\x80"},
  };
  for (const auto& vector : kVectors) {
    char stream[64];
    char wanted[64];
    snprintf(stream, sizeof stream, "data:a%s\n\n", vector.bytes.data());
    int size = snprintf(wanted, sizeof wanted, "||a");
    for (int i = 0; i < vector.replaced; ++i) size += snprintf(wanted + size, sizeof wanted - size, "%s", r.data());
    snprintf(wanted + size, sizeof wanted - size, "%s;", vector.rest.data());
    tells(stream, wanted);
  }
  tells("id:\xff\nevent:\xc3\ndata:x\n\n", "\xef\xbf\xbd|\xef\xbf\xbd|x;");
  tells("d\xff:1\ndata:2\n\n", "||2;");
}

TEST(EventParser, a_character_cut_off_by_a_line_end_does_not_swallow_it) {
  tells("data:\xe2\x82\ndata:b\n\n", "||\xef\xbf\xbd\nb;");
  tells("data:\xf0\x9f\r\r", "||\xef\xbf\xbd;");
}

TEST(EventParser, an_id_without_data_is_in_force_at_the_end_of_its_event) {
  tells("id:7\n\ndata:x\n\n", "|7|x;");
  Reader reader;
  reader.read("id:7\n");
  CHECK_TRUE(reader.last_id().empty());
  reader.read("\n");
  CHECK_TRUE(reader.last_id() == "7");
}

TEST(EventParser, the_last_of_several_fields_counts_whatever_their_lengths) {
  tells("id:one\nevent:first\nid:three33\nevent:e\nid:2\nevent:second\ndata:x\n\ndata:y\n\n", "second|2|x;|2|y;");
  tells("event:first\nid:one\nevent:much longer than the first\ndata:x\nid:1\n\n", "much longer than the first|1|x;");
  tells("data:x\nid:longest\nevent:e\nevent\nid\nid:1\n\n", "|1|x;");
}

TEST(EventParser, fields_in_another_case_or_with_spaces_are_unknown) {
  tells("Data:1\ndata :2\n data:3\nDATA:4\ndata:5\n\n", "||5;");
  tells("ID:1\nEvent:e\ndata:x\n\n", "||x;");
}

TEST(EventParser, a_type_is_of_its_event_only_with_data_or_without) {
  tells("event:lost\n\ndata:x\n\n", "||x;");
}

TEST(EventParser, the_last_id_and_the_retry_outlive_the_stream) {
  Reader reader;
  reader.read("retry:5\nid:1\ndata:a\n\nid:2\nevent:e\ndata:b");
  reader.restart();
  CHECK_TRUE(reader.last_id() == "1");
  LONGS_EQUAL(5, reader.parser.retry_ms().value_or(0));
  reader.read(
      "\xef\xbb\xbf"
      "data:c\n\n");
  CHECK_TRUE(reader.told() == "|1|a;|1|c;");
}

TEST(EventParser, a_stream_that_ends_with_cr_does_not_eat_the_next_ones_lf) {
  Reader reader;
  reader.read("data:a\r\r");
  reader.restart();
  reader.read("\n\ndata:b\n\n");
  CHECK_TRUE(reader.told() == "||a;||b;");
}

TEST(EventParser, an_id_that_is_known_from_before_is_in_force) {
  Reader reader(16);
  CHECK_FALSE(reader.set_last_id("seventeen bytes!!"));
  CHECK_TRUE(reader.set_last_id("41"));
  CHECK_TRUE(reader.last_id() == "41");
  reader.read("data:a\n\nid:42\ndata:b\n\n");
  CHECK_TRUE(reader.told() == "|41|a;|42|b;");
}

TEST(EventParser, a_retry_too_large_counts_as_the_largest) {
  Reader reader;
  reader.read("retry:99999999999999999999999999\n");
  CHECK_TRUE(reader.parser.retry_ms() == UINT32_MAX);
  reader.read("retry:0\n");
  LONGS_EQUAL(0, reader.parser.retry_ms().value_or(1));
}

TEST(EventParser, a_line_over_its_ceiling_is_the_end_but_for_a_comment) {
  tells("data:12345\n\ndata:123456\n\n", "||12345;LIMIT", 100, 10);
  tells(":123456789\n:1234567890\n:\n\ndata:x\n\n:12345678901\n", "||x;", 100, 10);
  tells("unknown:12\ndata:x\n\nunknown:123", "||x;LIMIT", 100, 10);
}

TEST(EventParser, an_event_over_the_buffer_is_the_end) {
  tells("data:123456\n\n", "||123456;", 11);
  tells("data:1234567\n\n", "LIMIT", 11);
  tells("data:1\ndata:2\ndata:3\n\n", "||1\n2\n3;", 10);
  tells("data:1\ndata:2\ndata:3\n\n", "LIMIT", 9);
  tells("id:1\ndata:2\n\ndata:34\n\n", "|1|2;|1|34;", 8);
  tells("id:1\ndata:2\n\ndata:345\n\n", "|1|2;LIMIT", 8);
  tells("event:1234\n", "", 14);
  tells("event:1234\n", "LIMIT", 13);
  tells("id:1234\n", "", 11);
  tells("id:1234\n", "LIMIT", 10);
  tells("event:a\nid:bb\nevent:ccc\ndata:d\n\n", "ccc|bb|d;", 14);
  tells("event:a\nid:bb\nevent:ccc\ndata:d\n\n", "LIMIT", 13);
  tells("event:1234\ndata:12345\n\n", "1234||12345;", 14);
  tells("event:1234\ndata:123456\n\n", "LIMIT", 14);
  tells("id:1234\ndata:12\n\n", "|1234|12;", 11);
  tells("id:1234\ndata:123\n\n", "LIMIT", 11);
  tells("event:e\nid:1234\ndata:1\n\n", "e|1234|1;", 12);
  tells("event:e\nid:1234\ndata:1\n\n", "LIMIT", 11);
  tells("x", "LIMIT", 0);
}

TEST(EventParser, a_stream_of_events_has_no_ceiling) {
  Reader reader(32, 32);
  for (int i = 0; i < 200; ++i) reader.read("id:12\nevent:e\ndata:x\n:comment\n\n");
  LONGS_EQUAL(200 * 7, reader.told().size());
}

TEST(EventParser, a_parser_is_forty_bytes) {
  LONGS_EQUAL(40, sizeof(EventParser));
}

}  // namespace event_parser_test
