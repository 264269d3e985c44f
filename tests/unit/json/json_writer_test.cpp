// JsonWriter writes JSON for every input.

#include <CppUTest/TestHarness.h>
#include <coir/json_writer.h>

#include <climits>
#include <cstring>
#include <string_view>

#include "tests/support/child.h"

namespace json_writer_test {

using namespace coir;

namespace {

// Sink takes `room` bytes and then fails.
struct Sink {
  std::expected<void, Error> write(std::string_view piece) noexcept {
    ++calls;
    if (used + piece.size() > room) return std::unexpected(Error{ErrorCode::closed});
    memcpy(text + used, piece.data(), piece.size());
    used += piece.size();
    return {};
  }
  std::string_view view() const { return {text, used}; }
  std::size_t room = sizeof text;
  std::size_t used = 0;
  int calls = 0;
  char text[4096];
};

void document(JsonWriter& out) {
  out.object().member("name", "a \"b\"\n").member("on", true).member("count", 3u).member("celsius", fixed(-2153, 2));
  out.name("list").array().value(1).value("two").null().value(false).array().end().object().end().end();
  out.name("raw").raw("[1, 2]").end();
}

}  // namespace

TEST_GROUP(JsonWriter) {};

TEST(JsonWriter, writes_commas_names_and_ends) {
  Sink sink;
  JsonWriter out(sink);
  document(out);
  CHECK(out.finish().has_value());
  CHECK(sink.view() ==
        R"({"name":"a \"b\"\n","on":true,"count":3,"celsius":-21.53,"list":[1,"two",null,false,[],{}],"raw":[1, 2]})");
}

TEST(JsonWriter, a_value_alone_is_a_text) {
  Sink sink;
  JsonWriter out(sink);
  CHECK(out.value("x").finish().has_value());
  CHECK(sink.view() == "\"x\"");
  const char* const nothing = nullptr;
  Sink empty;
  CHECK(JsonWriter(empty).value(nothing).finish().has_value());
  CHECK(empty.view() == "\"\"");
}

TEST(JsonWriter, numbers_are_whole_to_their_bounds) {
  Sink sink;
  JsonWriter out(sink);
  out.array()
      .value(INT64_MIN)
      .value(UINT64_MAX)
      .value(fixed(INT64_MIN, 19))
      .value(zeros(7, 5))
      .value(fixed(1, 40))
      .end();
  CHECK(out.finish().has_value());
  CHECK(sink.view() ==
        "[-9223372036854775808,18446744073709551615,-0.9223372036854775808,7,0."
        "0000000000000000000000000000000000000001]");
  Sink other;
  JsonWriter longer(other);
  longer.value(fixed(1, 100));
  CHECK(longer.finish().error() == ErrorCode::limit);
}

TEST(JsonWriter, floating_point_reads_back_the_same_and_what_is_no_number_is_null) {
  Sink sink;
  JsonWriter out(sink);
  out.object().member("celsius", 21.5).member("single", 0.1f).member("large", 1e300).member("whole", -3.0);
  out.name("none").array().value(__builtin_nan("")).value(__builtin_inf()).value(-__builtin_inff()).end().end();
  CHECK(out.finish().has_value());
  CHECK(sink.view() == R"({"celsius":21.5,"single":0.1,"large":1e+300,"whole":-3,"none":[null,null,null]})");
}

TEST(JsonWriter, long_text_is_escaped_in_pieces_of_whole_characters) {
  // Each cut falls into another byte of a character.
  for (std::size_t shift = 0; shift < 8; ++shift) {
    char text[600];
    std::size_t size = 0;
    for (; size < shift; ++size) text[size] = 'a';
    for (const char* const each[] = {"\xf0\x9f\x98\x80", "\xe2\x82\xac", "\xc3\xa9", "\n"}; size < 580;) {
      for (const char* character : each) {
        memcpy(text + size, character, strlen(character));
        size += strlen(character);
      }
    }
    Sink sink;
    CHECK(JsonWriter(sink).value({text, size}).finish().has_value());
    char whole[4000];
    CHECK(sink.view() == coir::format(whole, json_quoted({text, size})));
  }
}

TEST(JsonWriter, bytes_that_are_no_utf8_become_replacement_characters) {
  char text[300];
  memset(text, '\x80', sizeof text);
  Sink sink;
  CHECK(JsonWriter(sink).value({text, sizeof text}).finish().has_value());
  CHECK_EQUAL(sizeof text * 6 + 2, sink.used);
  CHECK(sink.view().substr(0, 7) == "\"\\ufffd");
}

TEST(JsonWriter, the_first_failure_is_kept_and_ends_the_writing) {
  Sink whole;
  JsonWriter complete(whole);
  document(complete);
  for (std::size_t room = 0; room < whole.used; ++room) {
    Sink sink{.room = room};
    JsonWriter out(sink);
    document(out);
    CHECK(out.finish().error() == ErrorCode::closed);
    CHECK(whole.view().substr(0, sink.used) == sink.view());
    const int calls = sink.calls;
    out.object().name("x").end();
    CHECK(out.finish().error() == ErrorCode::closed);
    CHECK_EQUAL(calls, sink.calls);
  }
}

TEST(JsonWriter, small_pieces_are_gathered_and_written_at_the_end) {
  Sink sink;
  {
    JsonWriter out(sink);
    document(out);
    CHECK_EQUAL(0, sink.calls);
  }
  CHECK_EQUAL(1, sink.calls);
  Sink finished;
  JsonWriter out(finished);
  document(out);
  CHECK(out.finish().has_value());
  CHECK(finished.view() == sink.view());
  // Longer than what is gathered, and in order.
  char text[1000];
  memset(text, '1', sizeof text);
  Sink longer;
  CHECK(JsonWriter(longer).array().value(2).raw({text, sizeof text}).value(3).end().finish().has_value());
  CHECK_EQUAL(sizeof text + 6, longer.used);
  CHECK(longer.view().starts_with("[2,11") && longer.view().ends_with("11,3]"));
}

TEST(JsonWriter, memory_of_the_callers_is_a_sink) {
  char room[12];
  JsonText text(room);
  JsonWriter out(text);
  CHECK(out.array().value(1).value(22).value(333).end().finish().has_value());
  CHECK(text.view() == "[1,22,333]");
  char small[9];
  JsonText full(small);
  JsonWriter more(full);
  CHECK(more.array().value(1).value(22).value(333).end().finish().error() == ErrorCode::limit);
}

TEST(JsonWriter, unfinished_text_is_invalid) {
  Sink sink;
  JsonWriter none(sink);
  CHECK(none.finish().error() == ErrorCode::invalid);
  JsonWriter open(sink);
  CHECK(open.array().value(1).finish().error() == ErrorCode::invalid);
}

TEST(JsonWriter, nesting_is_bounded) {
  Sink sink;
  JsonWriter out(sink);
  for (std::size_t i = 0; i < JsonWriter::kMaxDepth; ++i) i % 2 == 0 ? out.array() : out.object().name("a");
  for (std::size_t i = JsonWriter::kMaxDepth; i > 0; --i) {
    if (i == JsonWriter::kMaxDepth) out.null();
    out.end();
  }
  CHECK(out.finish().has_value());
  JsonWriter deeper(sink);
  for (std::size_t i = 0; i <= JsonWriter::kMaxDepth; ++i) deeper.array();
  for (std::size_t i = 0; i <= JsonWriter::kMaxDepth; ++i) deeper.end();
  CHECK(deeper.finish().error() == ErrorCode::limit);
}

TEST(JsonWriter, a_text_that_is_not_json_ends_the_program_with_a_line) {
  const auto says = [](const char* line, void (*body)(JsonWriter&)) {
    const auto end = test::in_child([&] {
      Sink sink;
      JsonWriter out(sink);
      body(out);
      return 0;
    });
    CHECK_TEXT(end.wrote(line), end.output);
    CHECK(end.status != 0);
  };
  says("a value in an object has no name", [](JsonWriter& out) { out.object().value(1); });
  says("a name stands where no name can", [](JsonWriter& out) { out.array().name("a"); });
  says("a name stands where no name can", [](JsonWriter& out) { out.object().name("a").name("b"); });
  says("a name has no value", [](JsonWriter& out) { out.object().name("a").end(); });
  says("an end too many", [](JsonWriter& out) { out.array().end().end(); });
  says("a second value follows", [](JsonWriter& out) { out.value(1).value(2); });
}

}  // namespace json_writer_test
