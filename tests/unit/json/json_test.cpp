// Which texts are JSON (RFC 8259), and what bounds them.

#include <CppUTest/TestHarness.h>
#include <coir/json.h>

#include <array>
#include <cstring>
#include <memory>
#include <string_view>

namespace json_test {

using namespace coir;

namespace {

// The heap of a test is not the ledger's.
struct Text {
  explicit Text(std::string_view text) : size(text.size()), bytes(new char[text.size() + 1]) {
    memcpy(bytes, text.data(), text.size());
  }
  ~Text() { delete[] bytes; }
  std::string_view view() const { return {bytes, size}; }
  std::size_t size;
  char* bytes;
};

void accepts(std::string_view text) {
  const auto document = JsonDocument::parse(text);
  CHECK_TEXT(document.has_value(), SimpleString(text.data(), 1).asCharString());
}

void refuses(std::string_view text, ErrorCode code = ErrorCode::invalid) {
  const auto document = JsonDocument::parse(text);
  if (document) FAIL(StringFromFormat("taken: %.*s", static_cast<int>(text.size()), text.data()).asCharString());
  CHECK(document.error().error == code);
  CHECK(document.error().offset <= text.size());
  CHECK(document.error().what[0] != '\0');
}

}  // namespace

TEST_GROUP(Json) {
  void teardown() override { CHECK_EQUAL(0, account::json.used()); }  // namespace json_test
};

TEST(Json, takes_each_form_that_the_grammar_has) {
  constexpr std::string_view texts[] = {
      "{}",
      "[]",
      "null",
      "true",
      "false",
      "0",
      "-0",
      "\"\"",
      " \t\r\n[ ]\n",
      "[1]",
      "[1,2]",
      "{\"\":0}",
      "{\"a\":[]}",
      "-1",
      "1.0",
      "0.5",
      "-0.5e-10",
      "1E+2",
      "1e2",
      "123456789012345678901234567890",
      "1e308",
      "0e99999",
      "5e-324",
      "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"",
      "\"\\u0041\\u00e9\\u20AC\\uD83D\\uDE00\"",
      "\"\\u0000\"",
      "\"\x7f\"",
      "\"\xc3\xa9\"",
      "\"\xe2\x82\xac\"",
      "\"\xf0\x9f\x98\x80\"",
      "\"\xf4\x8f\xbf\xbf\"",
      "\"\xe2\x80\xa8\"",
      "{\"a\":1,\"a\":2}",
      "[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]",
      "[\"a\",{\"b\":null},-2.5,true]",
  };
  for (const auto text : texts) accepts(text);
}

TEST(Json, refuses_what_the_grammar_has_not) {
  constexpr std::string_view texts[] = {
      "",
      " ",
      "{",
      "[",
      "]",
      "}",
      "[1",
      "[1,",
      "[1,]",
      "[,1]",
      "[,]",
      "[1 2]",
      "{\"a\"}",
      "{\"a\":}",
      "{\"a\":1,}",
      "{,}",
      "{a:1}",
      "{1:1}",
      "{'a':1}",
      "{\"a\" 1}",
      "{\"a\":1 \"b\":2}",
      "{\"a\":1]",
      "[1}",
      "nul",
      "NULL",
      "True",
      "truex",
      "undefined",
      "NaN",
      "-NaN",
      "Infinity",
      "-Infinity",
      "nan",
      "inf",
      "+1",
      "01",
      "-01",
      "-",
      ".5",
      "5.",
      "1.e1",
      "1e",
      "1e+",
      "0x10",
      "1_000",
      "1,000",
      "--1",
      "1e999",
      "-1e999",
      "1 1",
      "[]]",
      "[] []",
      "{}x",
      "\"",
      "\"a",
      "'a'",
      "\"\\\"",
      "\"\\x41\"",
      "\"\\u12\"",
      "\"\\u12G4\"",
      "\"\\uD800\"",
      "\"\\uDC00\"",
      "\"\\uD800\\u0041\"",
      "\"\\uD800x\"",
      "\"\\a\"",
      "\"\n\"",
      "\"\t\"",
      "\"\x1f\"",
      "\"\xff\"",
      "\"\xc0\xaf\"",
      "\"\xc3\"",
      "\"\xe0\x80\x80\"",
      "\"\xed\xa0\x80\"",
      "\"\xf4\x90\x80\x80\"",
      "\"\xf8\x88\x80\x80\x80\"",
      "\x80",
      "\xef\xbb\xbf{}",
      "// a\n1",
      "/* a */1",
      "1//",
      "[1,/**/2]",
      "\x0b[]",
      "\x0c[]",
      "\xc2\xa0[]",
      "{\"a\":1,,\"b\":2}",
      "[1,,2]",
      "[\"a\":1]",
  };
  for (const auto text : texts) refuses(text);
  refuses(std::string_view("\0", 1));
  refuses(std::string_view("\"\0\"", 3));
  refuses(std::string_view("[]\0", 3));
}

TEST(Json, a_flaw_names_its_byte) {
  const auto document = JsonDocument::parse("{\"a\":1,\"b\":tru}");
  CHECK(!document);
  CHECK(document.error().offset >= 11 && document.error().offset <= 14);
}

TEST(Json, a_text_cut_anywhere_is_refused) {
  constexpr std::string_view text = "{\"name\":\"\\u00e9\\n\",\"list\":[1,-2.5e3,true,null,{\"x\":[]}]}";
  accepts(text);
  // Exactly as long, so that a sanitizer sees a read behind the end.
  for (std::size_t size = 0; size < text.size(); ++size) refuses(Text(text.substr(0, size)).view());
}

TEST(Json, longer_than_the_limit_is_refused_unparsed) {
  CHECK(JsonDocument::parse("[1,2]", {.max_bytes = 5}).has_value());
  const auto longer = JsonDocument::parse("[1,2 ]", {.max_bytes = 5});
  CHECK(!longer && longer.error().error == ErrorCode::limit);
  // The limit is found before the fault.
  const auto bad = JsonDocument::parse("nonsense", {.max_bytes = 5});
  CHECK(!bad && bad.error().error == ErrorCode::limit);
}

TEST(Json, deeper_than_the_limit_is_refused_unparsed) {
  CHECK(JsonDocument::parse("[{\"a\":[]}]", {.max_depth = 3}).has_value());
  const auto deeper = JsonDocument::parse("[{\"a\":[[]]}]", {.max_depth = 3});
  CHECK(!deeper && deeper.error().error == ErrorCode::limit);
  CHECK_EQUAL(7, deeper.error().offset);
  // Brackets in strings do not count, nor those that are closed.
  CHECK(JsonDocument::parse("[\"[[[[\\\"[[[[\",[],[],[]]", {.max_depth = 2}).has_value());
  CHECK(JsonDocument::parse("1", {.max_depth = 0}).has_value());
  CHECK(!JsonDocument::parse("[]", {.max_depth = 0}));
}

// Strings are passed over in steps of eight bytes: a quote that ends one, or is escaped, is seen at each place of a step.
TEST(Json, brackets_count_behind_a_string_and_not_in_it_wherever_it_ends) {
  constexpr std::string_view kEscapes[] = {"", "\\\"", "\\\\", "\\\\\\\""};
  for (std::size_t before = 0; before < 20; ++before) {
    for (const std::string_view escape : kEscapes) {
      for (std::size_t behind = 0; behind < 20; ++behind) {
        char room[80];
        std::size_t used = 0;
        const auto put = [&](std::string_view text) {
          memcpy(room + used, text.data(), text.size());
          used += text.size();
        };
        put("[\"");
        for (std::size_t i = 0; i < before; ++i) put("[");
        put(escape);
        for (std::size_t i = 0; i < behind; ++i) put("{");
        put("\"");
        const std::size_t end = used;
        put("]");
        const Text flat({room, used});
        CHECK(JsonDocument::parse(flat.view(), {.max_depth = 1}).has_value());
        used = end;
        put(",[]]");
        const Text deep({room, used});
        const auto refused = JsonDocument::parse(deep.view(), {.max_depth = 1});
        CHECK(!refused && refused.error().error == ErrorCode::limit && refused.error().offset == end + 1);
      }
    }
  }
}

TEST(Json, thousands_of_brackets_take_neither_stack_nor_memory) {
  std::array<char, 16'384> text;
  text.fill('[');
  const auto document = JsonDocument::parse({text.data(), text.size()});
  CHECK(!document && document.error().error == ErrorCode::limit);
  text.fill('{');
  CHECK(!JsonDocument::parse({text.data(), text.size()}, {.max_depth = SIZE_MAX}));
}

TEST(Json, memory_is_charged_and_refunded) {
  {
    auto document = JsonDocument::parse("[1,2,3]");
    CHECK(document.has_value());
    CHECK_EQUAL(JsonDocument::bytes_needed("[1,2,3]"), account::json.used());
    // A document that was moved from owns nothing.
    const JsonDocument moved(std::move(*document));
    CHECK_EQUAL(3, moved.root().size());
  }
  CHECK_EQUAL(0, account::json.used());
  CHECK(!JsonDocument::parse("[1,2"));
}

TEST(Json, the_ceiling_refuses_a_document) {
  account::json.set_ceiling(64);
  const auto document = JsonDocument::parse("[1,2,3]");
  account::json.set_ceiling(SIZE_MAX);
  CHECK(!document && document.error().error == ErrorCode::no_memory);
}

TEST(Json, bytes_needed_are_enough_for_any_text) {
  static char memory[80'000];
  static char text[4000];
  // Texts that take the most memory for their length, and the least; minified, pretty.
  constexpr std::string_view pieces[] = {
      "1,", "[],", "{},", "\"\",", "{\"\":1},", "12345678,", "\"a longer text in it\",", "\n1,"};
  for (const auto piece : pieces) {
    for (std::size_t count : {0, 1, 2, 3, 7, 50, 400}) {
      std::size_t size = 0;
      text[size++] = '[';
      for (std::size_t i = 0; i < count && size + piece.size() + 2 < sizeof text; ++i) {
        memcpy(text + size, piece.data(), piece.size());
        size += piece.size();
      }
      if (size > 1) --size;
      text[size++] = ']';
      const std::string_view whole(text, size);
      const std::size_t needed = JsonDocument::bytes_needed(whole);
      CHECK(needed <= sizeof memory);
      // Nowhere aligned by luck.
      for (std::size_t shift : {0, 1, 15}) {
        const auto document = JsonDocument::parse(whole, {memory + shift, needed});
        if (!document) FAIL(StringFromFormat("%d of \"%s\"", static_cast<int>(count), piece.data()).asCharString());
      }
      // The bound that read_json tells.
      CHECK(JsonDocument::parse(whole, {memory, 16 * size + 600}).has_value());
    }
  }
}

TEST(Json, too_little_memory_is_an_error_at_any_size) {
  constexpr std::string_view text = "{\"a\":[1,2,3,4,5,6,7,8,9],\"b\":\"text\"}";
  const std::size_t needed = JsonDocument::bytes_needed(text);
  std::size_t taken = 0;
  for (std::size_t size = 0; size <= needed; ++size) {
    const std::unique_ptr<char[]> block(new char[size + 1]);
    const auto document = JsonDocument::parse(text, {block.get(), size});
    if (document) {
      ++taken;
      CHECK_EQUAL(9, document->root()["a"].size());
    } else {
      CHECK(document.error().error == ErrorCode::limit);
    }
  }
  CHECK(taken > 0);
}

TEST(Json, a_text_at_the_front_of_the_memory_is_parsed_there) {
  static char memory[1024];
  constexpr std::string_view text = "{\"a\":\"b\\u0063\"}";
  memcpy(memory, text.data(), text.size());
  const auto document = JsonDocument::parse({memory, text.size()}, memory);
  CHECK(document.has_value());
  const auto value = document->root()["a"].text();
  CHECK(value && *value == "bc");
  CHECK(value->data() > memory && value->data() < memory + text.size());
  CHECK_EQUAL(0, account::json.used());
}

}  // namespace json_test
