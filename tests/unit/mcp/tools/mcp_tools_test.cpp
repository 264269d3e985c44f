// Tools: a schema made while compiling, arguments checked against it, and what is wrong told by its path.

#include <CppUTest/TestHarness.h>
#include <coir/mcp/detail/tool.h>

#include <string_view>

#include "mcp/tools/schema_check.h"

namespace mcp_tools_test {

using namespace coir;
using namespace coir::mcp;

namespace {

constexpr std::string_view kModes[] = {"in", "out"};

struct Pin {
  int pin = -1;
  bool high = true;
  std::string_view mode;
  std::optional<double> volts;
  std::uint8_t strength = 3;
  std::optional<JsonView> extra;
};
constexpr auto kPin =
    fields(field<&Pin::pin>("pin", "number of \"the\" pin").between(0, 31), field<&Pin::high>("high").optional(),
           field<&Pin::mode>("mode").one_of(kModes), field<&Pin::volts>("volts").between(0, 5),
           field<&Pin::strength>("strength").optional(), field<&Pin::extra>("extra"));

void run(Call&, const Pin&) {}
void nothing(Call&) {}
constexpr Tool kTool = tool<run, kPin>({.name = "pin"});
constexpr Tool kPlain = tool<nothing>({.name = "plain"});

// Made while compiling.
static_assert(
    kTool.input_schema ==
    R"({"type":"object","properties":{"pin":{"type":"integer","description":"number of \"the\" pin","minimum":0,)"
    R"("maximum":31},"high":{"type":"boolean"},"mode":{"type":"string","enum":["in","out"]},"volts":{"type":"number",)"
    R"("minimum":0,"maximum":5},"strength":{"type":"integer","minimum":0,"maximum":255},"extra":{}},)"
    R"("required":["pin","mode"],"additionalProperties":false})");
static_assert(kPlain.input_schema == R"({"type":"object","additionalProperties":false})");

struct Checked {
  char memory[4096];
  char room[200];
  std::expected<JsonDocument, JsonFlaw> document;
  Pin pin;
  std::string_view flaw;

  explicit Checked(std::string_view text) : document(JsonDocument::parse(text, memory)) {
    flaw = check_fields(kPin.entries, document->root(), &pin, room);
  }
};

void says(const char* wanted, std::string_view arguments) {
  const Checked checked(arguments);
  STRNCMP_EQUAL(wanted, checked.flaw.data(), checked.flaw.size());
  LONGS_EQUAL(std::string_view(wanted).size(), checked.flaw.size());
}

}  // namespace

TEST_GROUP(McpTools) {};

TEST(McpTools, arguments_fill_the_struct) {
  const Checked all(R"({"pin":7,"high":false,"mode":"out","volts":3.3,"strength":255,"extra":[1]})");
  CHECK(all.flaw.empty());
  LONGS_EQUAL(7, all.pin.pin);
  CHECK(!all.pin.high && all.pin.mode == "out" && all.pin.volts == 3.3 && all.pin.strength == 255);
  CHECK(all.pin.extra && all.pin.extra->size() == 1);
}

TEST(McpTools, a_missing_optional_argument_keeps_its_value) {
  const Checked few(R"({"pin":5.0,"mode":"in","volts":null})");
  CHECK(few.flaw.empty());
  LONGS_EQUAL(5, few.pin.pin);
  CHECK(few.pin.high && !few.pin.volts && few.pin.strength == 3 && !few.pin.extra);
}

TEST(McpTools, a_fault_is_told_by_its_path) {
  says("arguments.pin: 32 expected 0..31", R"({"pin":32,"mode":"in"})");
  says("arguments.pin: -1 expected 0..31", R"({"pin":-1,"mode":"in"})");
  says("arguments.pin: 18446744073709551615 expected 0..31", R"({"pin":18446744073709551615,"mode":"in"})");
  says("arguments.pin: a whole number expected", R"({"pin":1.5,"mode":"in"})");
  says("arguments.pin: a whole number expected, not a text", R"({"pin":"1","mode":"in"})");
  says("arguments.pin: missing", R"({"mode":"in"})");
  says("arguments.high: true or false expected, not a number", R"({"pin":1,"mode":"in","high":1})");
  says("arguments.mode: up expected one of in, out", R"({"pin":1,"mode":"up"})");
  says("arguments.mode: a text expected, not an array", R"({"pin":1,"mode":[]})");
  says("arguments.volts: a number from 0 to 5 expected", R"({"pin":1,"mode":"in","volts":5.1})");
  says("arguments.strength: 256 expected 0..255", R"({"pin":1,"mode":"in","strength":256})");
  says("arguments.colour: nothing of that name is expected", R"({"pin":1,"mode":"in","colour":1})");
  says("arguments: an object expected", R"([])");
}

TEST(McpTools, a_struct_is_written_by_the_same_declaration) {
  const Pin pin{.pin = 3, .high = false, .mode = "in", .volts = 0.1, .strength = 1, .extra = {}};
  char room[200];
  JsonText text(room);
  {
    JsonWriter out(text);
    out.object();
    for (const Field& each : kPin.entries) each.write(each, out, &pin);
    out.end();
  }
  CHECK(text.view() == R"({"pin":3,"high":false,"mode":"in","volts":0.1,"strength":1})");
}

TEST(McpTools, a_mirrored_field_says_what_the_argument_does) {
  char memory[1024];
  const auto document = JsonDocument::parse(R"({"n":42,"t":"x","b":true,"f":1.5})", memory);
  const JsonView root = document->root();
  CHECK(same_as_value(root["n"], "42") && same_as_value(root["n"], "42.0"));
  CHECK(!same_as_value(root["n"], "42.5") && !same_as_value(root["n"], "43") && !same_as_value(root["n"], "42x"));
  CHECK(!same_as_value(root["n"], "42.") && !same_as_value(root["n"], ""));
  CHECK(same_as_value(root["t"], "x") && !same_as_value(root["t"], "X"));
  CHECK(same_as_value(root["b"], "true") && !same_as_value(root["b"], "True"));
  CHECK(!same_as_value(root["f"], "1.5"));
}

}  // namespace mcp_tools_test
