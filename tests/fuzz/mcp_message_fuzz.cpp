// Any bytes from a client. A message over a limit is refused before it is parsed. A message that is read is one of the
// four kinds, and its values, written again, are read the same. A field's value has one meaning.

#include <coir/mcp/detail/tool.h>

#include "mcp/message/field_value.h"
#include "mcp/message/message.h"
#include "mcp/tools/schema_check.h"
#include "require.h"

using namespace coir;
using namespace coir::mcp;

namespace {

constexpr std::string_view kModes[] = {"in", "out"};
struct Arguments {
  int pin = 7;
  bool high = false;
  std::string_view mode;
  std::optional<double> volts;
  std::optional<JsonView> any;
};
constexpr auto kFields =
    fields(field<&Arguments::pin>("pin").between(0, 31), field<&Arguments::high>("high").optional(),
           field<&Arguments::mode>("mode").one_of(kModes).optional(), field<&Arguments::volts>("volts"),
           field<&Arguments::any>("any"));

// written writes a value into `room`.
std::string_view written(JsonView value, std::span<char> room) {
  JsonText text(room);
  JsonWriter out(text);
  coir::copy_json(out, value);
  require(out.finish().has_value());
  return text.view();
}

void judge_arguments(const std::optional<JsonView>& value) {
  Arguments arguments;
  char room[200];
  const std::string_view flaw = check_fields(kFields.entries, value, &arguments, room);
  if (!flaw.empty()) {
    require(begins(flaw, "arguments"));
    return;
  }
  require(arguments.pin >= 0 && arguments.pin <= 31);
  require(arguments.mode.empty() || arguments.mode == "in" || arguments.mode == "out");
}

void judge_field(std::string_view value) {
  char room[512];
  const auto decoded = decode_field_value(value, room);
  if (decoded) {
    require(field_says(value, *decoded));
    char longer[520];
    memcpy(longer, decoded->data(), decoded->size());
    longer[decoded->size()] = 'x';
    require(!field_says(value, {longer, decoded->size() + 1}));
  } else {
    require(!field_says(value, "") && !field_says(value, value));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  ::Source source(data, size);
  const MessageLimits limits = {.json = {.max_bytes = 64 + source.byte() * 16, .max_depth = 1 + source.byte() % 24},
                                .max_values = 1 + source.byte()};
  const std::string_view text = source.rest();
  if (text.size() <= 512) judge_field(text);
  const auto bytes = message_bytes(text, limits);
  require(!bytes || text.size() <= limits.json.max_bytes);
  if (!bytes) return 0;
  const Exact memory(*bytes);
  const auto document = parse_message(text, {memory.data(), memory.size()});
  if (!document) return 0;
  static char first[64 * 1024], second[64 * 1024], again[512 * 1024];
  const std::string_view once = written(document->root(), first);
  const auto copy = JsonDocument::parse(once, again, {.max_bytes = sizeof first, .max_depth = 32});
  require(copy.has_value());
  require(written(copy->root(), second) == once);
  MessageId id;
  const auto message = read_message(document->root(), id);
  if (!message) {
    require(message.error().code == kInvalidRequest || message.error().code == kInvalidParams);
    return 0;
  }
  require((message->kind == MessageKind::request) == (!message->method.empty() && message->id.given));
  require(message->id == id);
  if (message->kind == MessageKind::response) require(is_kind(message->params, JsonKind::object));
  judge_arguments(member_of(message->params, "arguments"));
  return 0;
}
