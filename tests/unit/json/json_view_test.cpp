// How a program reads a document, and which path a complaint names.

#include <CppUTest/TestHarness.h>
#include <coir/json.h>
#include <coir/json_fields.h>

#include <string_view>

namespace json_view_test {

using namespace coir;

namespace {

JsonDocument parsed(std::string_view text) {
  auto document = JsonDocument::parse(text);
  if (!document) FAIL("no JSON");
  return std::move(*document);
}

std::string_view complaint(const JsonDocument& document) {
  static char room[200];
  return document.complaint(room);
}

#define CHECK_COMPLAINT(text, document)                                                                  \
  STRCMP_EQUAL(text, SimpleString(StringFromFormat("%.*s", static_cast<int>(complaint(document).size()), \
                                                   complaint(document).data()))                          \
                         .asCharString())

}  // namespace

TEST_GROUP(JsonView) {};

TEST(JsonView, reads_each_kind) {
  const auto document =
      parsed(R"({"t":"a\u00e9\n","i":-7,"u":18446744073709551615,"d":2.5,"y":true,"n":null,"a":[1,"x"],"o":{"k":1}})");
  const JsonView root = document.root();
  CHECK(root["t"].text() == "a\xc3\xa9\n");
  CHECK(root["i"].integer<int>() == -7);
  CHECK(root["u"].integer<std::uint64_t>() == UINT64_MAX);
  CHECK(root["d"].number() == 2.5);
  CHECK(root["i"].number() == -7.0);
  CHECK(root["y"].boolean() == true);
  CHECK(root["a"][1].text() == "x");
  CHECK(root["o"]["k"].integer<unsigned>() == 1u);
  CHECK(root.kind() == JsonKind::object && root["n"].kind() == JsonKind::null && root["a"].kind() == JsonKind::array);
  CHECK(root["t"].kind() == JsonKind::text && root["d"].kind() == JsonKind::number &&
        root["y"].kind() == JsonKind::boolean);
  CHECK(!root["none"].kind());
  CHECK_EQUAL(8, root.size());
  CHECK_EQUAL(2, root["a"].size());
  CHECK_EQUAL(0, root["t"].size());
  CHECK(document.sound());
  CHECK(complaint(document).empty());
}

TEST(JsonView, numbers_are_exact_at_their_bounds) {
  const auto document = parsed(
      "[-9223372036854775808,9223372036854775807,9223372036854775808,-9223372036854775809,5.0,5e0,-0,-0.0,5.5,"
      "9007199254740993.0,"
      "0.1,255,256,-1]");
  const JsonView root = document.root();
  CHECK(root[0].integer<std::int64_t>() == INT64_MIN);
  CHECK(root[1].integer<std::int64_t>() == INT64_MAX);
  CHECK(root[2].integer<std::uint64_t>() == 9223372036854775808u);
  CHECK(root[4].integer<int>() == 5 && root[5].integer<unsigned>() == 5u);
  CHECK(root[6].integer<int>() == 0 && root[7].integer<unsigned>() == 0u);
  CHECK(root[10].number() == 0.1);
  CHECK(root[11].integer<std::uint8_t>() == 255);
  CHECK(document.sound());
  CHECK(root[2].integer<std::int64_t>().error() == ErrorCode::invalid);
  CHECK(!root[3].integer<std::int64_t>());
  CHECK(!root[8].integer<int>());
  CHECK(!root[9].integer<std::int64_t>());
  CHECK(!root[12].integer<std::uint8_t>());
  CHECK(!root[13].integer<std::uint8_t>());
  CHECK_COMPLAINT(
      "[2]: a whole number from -9223372036854775808 to 9223372036854775807 is wanted, this is 9223372036854775808",
      document);
}

TEST(JsonView, text_may_hold_nul_and_is_bounded) {
  const auto document = parsed(R"(["a\u0000b","four"])");
  CHECK(document.root()[0].text() == std::string_view("a\0b", 3));
  CHECK(document.root()[1].text(4) == "four");
  CHECK(document.root()[1].text(3).error() == ErrorCode::invalid);
  CHECK_COMPLAINT("[1]: too long, at most 3 bytes are taken", document);
}

TEST(JsonView, a_complaint_names_the_path) {
  constexpr std::string_view text = R"({"first":{"list":[0,[],{"my name":"x","b":{"c":[true]}}]},"last":null})";
  const auto at = [&](auto ask) {
    const auto document = parsed(text);
    ask(document.root());
    static char room[200];
    return SimpleString(StringFromFormat("%.*s", static_cast<int>(document.complaint(room).size()), room));
  };
  const auto says = [&](const char* line, auto ask) { STRCMP_EQUAL(line, at(ask).asCharString()); };
  says("first.list[2][\"my name\"]: a whole number from 0 to 9 is wanted, this is a text",
       [](JsonView root) { CHECK(!root["first"]["list"][2]["my name"].integer<int>(0, 9)); });
  says("first.list[2].b.c[0]: a number is wanted, this is true or false",
       [](JsonView root) { CHECK(!root["first"]["list"][2]["b"]["c"][0].number()); });
  says("first.list[1]: a text is wanted, this is an array",
       [](JsonView root) { CHECK(!root["first"]["list"][1].text()); });
  says("first.list[2].b: true or false is wanted, this is an object",
       [](JsonView root) { CHECK(!root["first"]["list"][2]["b"].boolean()); });
  says("last: a text is wanted, this is null", [](JsonView root) { CHECK(!root["last"].text()); });
  says("the document: a text is wanted, this is an object", [](JsonView root) { CHECK(!root.text()); });
  says("first.missing: missing",
       [](JsonView root) { CHECK(root["first"]["missing"].text().error() == ErrorCode::not_found); });
  says("first.list[3]: missing", [](JsonView root) { CHECK(!root["first"]["list"][3].text()); });
  says("[\"a b\\n\"]: missing", [](JsonView root) { CHECK(!root["a b\n"].text()); });
  // A value below a missing one is reported as the missing one.
  says("x: missing", [](JsonView root) { CHECK(!root["x"]["y"][3]["z"].number()); });
  // A member of what is no object is missing from it.
  says("last.x: missing", [](JsonView root) { CHECK(!root["last"]["x"].text()); });
}

TEST(JsonView, the_first_complaint_is_kept) {
  const auto document = parsed(R"({"a":1,"b":2})");
  CHECK(!document.root()["b"].text());
  CHECK(!document.root()["a"].integer<int>(5, 6));
  CHECK(!document.root()["a"].text(0));
  CHECK(!document.sound());
  CHECK_COMPLAINT("b: a text is wanted, this is a number", document);
}

TEST(JsonView, a_name_that_is_gone_is_still_told) {
  const auto document = parsed("{}");
  {
    char name[] = "temperature-that-is-much-longer-than-a-name-is-shown-to-be";
    CHECK(!document.root()[std::string_view(name, sizeof name - 1)].text());
    for (char& c : name) c = '#';
  }
  CHECK_COMPLAINT("temperature-that-is-much-longer-than-a-name-is-s: missing", document);
}

TEST(JsonView, find_does_not_complain) {
  const auto document = parsed(R"({"a":1,"n":null})");
  CHECK(document.root().find("a")->integer<int>() == 1);
  CHECK(!document.root().find("b"));
  CHECK(!document.root().find("n"));
  CHECK(!document.root()["a"].find("x"));
  CHECK(document.sound());
}

TEST(JsonView, ranges_visit_everything_in_order) {
  const auto document = parsed(R"({"list":[1,[9,9],{"x":9},4],"empty":[],"none":{}})");
  int seen = 0;
  for (const JsonView each : document.root()["list"].elements()) {
    ++seen;
    if (seen == 1) CHECK(each.integer<int>() == 1);
    if (seen == 3) CHECK(each["x"].integer<int>() == 9);
    if (seen == 4) CHECK(each.integer<int>() == 4);
  }
  CHECK_EQUAL(4, seen);
  std::string_view names[3];
  std::size_t count = 0;
  for (const auto [name, value] : document.root().members()) names[count++] = name;
  CHECK(count == 3 && names[0] == "list" && names[1] == "empty" && names[2] == "none");
  for (const JsonView each : document.root()["empty"].elements()) CHECK(!each.kind());
  for (const auto [name, value] : document.root()["none"].members()) CHECK(name == "-");
  CHECK(document.sound());
  for (const JsonView each : document.root()["none"].elements()) CHECK(!each.kind());
  CHECK_COMPLAINT("none: an array is wanted, this is an object", document);
  const auto other = parsed("[]");
  for (const auto [name, value] : other.root()["x"].members()) CHECK(name == "-");
  CHECK_COMPLAINT("x: missing", other);
}

TEST(JsonView, only_refuses_unknown_and_repeated_members) {
  const auto fine = parsed(R"({"b":1,"a":2})");
  CHECK(fine.root().only({"a", "b", "c"}).has_value());
  const auto unknown = parsed(R"({"a":{"b":1,"d":2}})");
  CHECK(unknown.root()["a"].only({"b", "c"}).error() == ErrorCode::invalid);
  CHECK_COMPLAINT("a.d: not known here", unknown);
  const auto repeated = parsed(R"({"a":1,"b":2,"a":3})");
  CHECK(!repeated.root().only({"a", "b"}));
  CHECK_COMPLAINT("a: stands here twice", repeated);
}

// A copy asks nothing that a value could fail: a document with fractions is as sound as before.
TEST(JsonView, a_copy_is_what_was_read_and_complains_of_nothing) {
  constexpr std::string_view text =
      R"({"d":1.5,"l":18446744073709551615,"i":-9223372036854775808,"e":1e+300,"z":-0,"n":null,"a":[true,"x",0.25]})";
  const auto document = parsed(R"( {"d":1.5,"l":18446744073709551615,"i":-9223372036854775808,"e":1e300,"z":-0.0,)"
                               R"("n":null,"a":[true,"x",0.25]})");
  char room[200];
  JsonText out(room);
  {
    JsonWriter writer(out);
    copy_json(writer, document.root());
    CHECK(writer.finish().has_value());
  }
  STRCMP_EQUAL(
      SimpleString(text.data()).asCharString(),
      SimpleString(StringFromFormat("%.*s", static_cast<int>(out.view().size()), out.view().data())).asCharString());
  CHECK(document.sound());
}

}  // namespace json_view_test
