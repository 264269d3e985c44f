// Messages of JSON-RPC, and what goes with them: fields' values, states that go through clients, texts that grow.

#include <CppUTest/TestHarness.h>
#include <coir/format.h>
#include <coir/ledger.h>
#include <coir/mcp.h>

#include <string_view>

#include "mcp/message/field_value.h"
#include "mcp/message/message.h"
#include "mcp/message/request_state.h"
#include "mcp/message/text.h"

namespace mcp_message_test {

using namespace coir;
using namespace coir::mcp;

namespace {

struct Parsed {
  char memory[16 * 1024];
  std::expected<JsonDocument, RpcFlaw> document;
  MessageId id;
  std::expected<mcp::Message, RpcFlaw> message = std::unexpected(RpcFlaw{0, ""});

  explicit Parsed(std::string_view text, const MessageLimits& limits = {}) : document(parse(text, memory, limits)) {
    if (document) message = read_message(document->root(), id);
  }
  static std::expected<JsonDocument, RpcFlaw> parse(std::string_view text, std::span<char> into,
                                                    const MessageLimits& limits) {
    const auto bytes = message_bytes(text, limits);
    if (!bytes) return std::unexpected(bytes.error());
    return parse_message(text, into.first(*bytes));
  }
  int code() const { return !document ? document.error().code : message ? 0 : message.error().code; }
  bool is(MessageKind kind) const { return document && message && message->kind == kind; }
};

}  // namespace

TEST_GROUP(McpMessage) {};

TEST(McpMessage, each_kind_is_told_by_its_members) {
  CHECK(Parsed(R"({"jsonrpc":"2.0","id":1,"method":"ping"})").is(MessageKind::request));
  CHECK(Parsed(R"({"jsonrpc":"2.0","id":"a","method":"ping","params":{}})").is(MessageKind::request));
  CHECK(Parsed(R"({"jsonrpc":"2.0","method":"notifications/x"})").is(MessageKind::notification));
  CHECK(Parsed(R"({"jsonrpc":"2.0","id":1,"result":{}})").is(MessageKind::response));
  CHECK(Parsed(R"({"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}})").is(MessageKind::error));
}

TEST(McpMessage, an_id_is_a_text_or_a_whole_number) {
  CHECK((Parsed(R"({"jsonrpc":"2.0","id":-7,"method":"x"})").id == MessageId{.given = true, .number = -7}));
  CHECK((Parsed(R"({"jsonrpc":"2.0","id":"7","method":"x"})").id ==
         MessageId{.given = true, .is_text = true, .text = "7"}));
  for (const std::string_view id : {"1.5", "null", "true", "[]", "{}", "18446744073709551615"}) {
    char text[100];
    LONGS_EQUAL(kInvalidRequest, Parsed(coir::format(text, R"({"jsonrpc":"2.0","method":"x","id":)", id, "}")).code());
  }
  LONGS_EQUAL(kInvalidRequest, Parsed(R"({"jsonrpc":"2.0","id":1,"id":2,"method":"x"})").code());
}

TEST(McpMessage, a_flaw_is_told_with_the_id_as_far_as_there_is_one) {
  LONGS_EQUAL(kParseError, Parsed("{").code());
  LONGS_EQUAL(kParseError, Parsed("").code());
  for (const std::string_view text :
       {R"([])", R"(1)", R"({"id":1,"method":"x"})", R"({"jsonrpc":"1.0","id":1,"method":"x"})",
        R"({"jsonrpc":"2.0","id":1,"method":5})", R"({"jsonrpc":"2.0","id":1,"method":""})",
        R"({"jsonrpc":"2.0","id":1})", R"({"jsonrpc":"2.0","result":{}})",
        R"({"jsonrpc":"2.0","id":1,"error":{"code":"x"}})"}) {
    LONGS_EQUAL(kInvalidRequest, Parsed(text).code());
  }
  const Parsed flawed(R"({"jsonrpc":"2.0","method":"x","params":[1],"id":9})");
  LONGS_EQUAL(kInvalidParams, flawed.code());
  LONGS_EQUAL(9, flawed.id.number);
}

TEST(McpMessage, a_text_is_bounded_before_it_is_parsed) {
  const MessageLimits limits = {.json = {.max_bytes = 64, .max_depth = 3}, .max_values = 8};
  LONGS_EQUAL(0, Parsed(R"({"jsonrpc":"2.0","id":1,"method":"x"})", limits).code());
  // Too long, too deep, too many values: each is refused though it would be JSON, or is none.
  LONGS_EQUAL(kInvalidRequest,
              Parsed(R"({"jsonrpc":"2.0","id":1,"method":"012345678901234567890123456789"})", limits).code());
  LONGS_EQUAL(kInvalidRequest, Parsed("[[[[", limits).code());
  LONGS_EQUAL(kInvalidRequest, Parsed("[1,2,3,4,5,6,7,8", limits).code());
}

TEST(McpMessage, a_value_is_written_again_as_it_was_read) {
  constexpr std::string_view kText =
      R"({"a":[1,-2,9007199254740993,18446744073709551615,0.1,1e300,true,false,null],"b":{"c":"\u00e9\n"}})";
  char memory[4096];
  const auto document = JsonDocument::parse(kText, memory);
  CHECK(document.has_value());
  char room[256];
  JsonText out(room);
  {
    JsonWriter writer(out);
    coir::copy_json(writer, document->root());
    CHECK(writer.finish().has_value());
  }
  CHECK(out.view() ==
        R"({"a":[1,-2,9007199254740993,18446744073709551615,0.1,1e+300,true,false,null],"b":{"c":"é\n"}})");
}

TEST(McpMessage, an_error_without_an_id_has_none) {
  char room[128];
  JsonText out(room);
  {
    JsonWriter writer(out);
    write_error(writer, {}, kParseError, "no");
  }
  CHECK(out.view() == R"({"jsonrpc":"2.0","error":{"code":-32700,"message":"no"}})");
}

TEST(McpMessage, a_fields_value_stands_for_what_it_encodes) {
  CHECK(field_says("plain", "plain"));
  CHECK(!field_says("plain", "Plain"));
  CHECK(field_says("=?base64?SGVsbG8=?=", "Hello"));
  CHECK(field_says("=?base64?\?=", ""));
  // Without both ends, or in other case, it is itself.
  CHECK(field_says("=?base64?SGVsbG8=", "=?base64?SGVsbG8="));
  CHECK(field_says("=?BASE64?SGVsbG8=?=", "=?BASE64?SGVsbG8=?="));
  // Without padding, with other digits, or with a tail, it is nothing.
  CHECK(!field_says("=?base64?SGVsbG8?=", "Hello"));
  CHECK(!field_says("=?base64?SGVs!!!bG8=?=", "Hello"));
  CHECK(!field_says("=?base64?SGVsbG8=SGVs?=", "HelloHel"));
  // Longer than a piece.
  CHECK(field_says("=?base64?MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5?=",
                   "012345678901234567890123456789012345678901234567890123456789"));
}

#if COIR_TLS

namespace {

constexpr StateBinding kBinding = {
    .key = "key", .principal = "ann", .method = "tools/call", .name = "t", .arguments = "{}"};

struct Sealed {
  char room[200];
  char out[200];
  std::string_view text;

  explicit Sealed(std::string_view state, std::int64_t expires = 100) {
    text = seal_state(kBinding, state, expires, room, out).value();
  }
};

ErrorCode opens(const StateBinding& binding, std::string_view text, std::int64_t now = 50) {
  char room[200];
  const auto opened = open_state(binding, text, now, room);
  return opened ? ErrorCode{} : opened.error().code;
}

}  // namespace

TEST(McpMessage, a_state_comes_back_as_it_was_given) {
  for (const std::string_view state :
       {std::string_view(), std::string_view("a"), std::string_view("\0\xff state", 8)}) {
    const Sealed sealed(state);
    char room[200];
    const auto opened = open_state(kBinding, sealed.text, 50, room);
    CHECK(opened && *opened == state);
  }
}

TEST(McpMessage, a_state_with_any_bit_changed_is_refused) {
  Sealed sealed("state");
  for (std::size_t i = 0; i < sealed.text.size(); ++i) {
    char changed[200];
    sealed.text.copy(changed, sealed.text.size());
    for (const char other : {'A', 'B', '/', '=', '!'}) {
      if (other == sealed.text[i]) continue;
      changed[i] = other;
      CHECK(opens(kBinding, {changed, sealed.text.size()}) == ErrorCode::invalid);
    }
  }
  for (std::size_t size = 0; size < sealed.text.size(); ++size) {
    CHECK(opens(kBinding, sealed.text.substr(0, size)) == ErrorCode::invalid);
  }
}

TEST(McpMessage, a_state_is_bound_to_its_request_and_expires) {
  const Sealed sealed("state");
  CHECK(opens(kBinding, sealed.text) == ErrorCode{});
  CHECK(opens(kBinding, sealed.text, 100) == ErrorCode{});
  CHECK(opens(kBinding, sealed.text, 101) == ErrorCode::timed_out);
  StateBinding other = kBinding;
  other.principal = "bob";
  CHECK(opens(other, sealed.text) == ErrorCode::invalid);
  other = kBinding;
  other.name = "u";
  CHECK(opens(other, sealed.text) == ErrorCode::invalid);
  other = kBinding;
  other.arguments = "{\"a\":1}";
  CHECK(opens(other, sealed.text) == ErrorCode::invalid);
  other = kBinding;
  other.key = "kez";
  CHECK(opens(other, sealed.text) == ErrorCode::invalid);
  // Bytes of one part cannot move into the next.
  other = kBinding;
  other.principal = "annt";
  other.method = "ools/call";
  CHECK(opens(other, sealed.text) == ErrorCode::invalid);
}

#endif

TEST(McpMessage, a_text_that_grows_is_charged_and_bounded) {
  const std::size_t before = account::mcp.used();
  {
    char room[8];
    Text text(room, 64);
    CHECK(text.write("12345678").has_value());
    LONGS_EQUAL(before, account::mcp.used());
    CHECK(text.write("9").has_value());
    CHECK(account::mcp.used() > before);
    CHECK(text.view() == "123456789");
    char more[64] = {};
    CHECK(text.write({more, sizeof more}).error() == ErrorCode::limit);
    // Later writes are dropped, so that no text with a hole in it is sent.
    CHECK(text.write("x").error() == ErrorCode::limit);
    CHECK(text.view() == "123456789");
  }
  LONGS_EQUAL(before, account::mcp.used());
  account::mcp.set_ceiling(before + 16);
  Text text({}, 64);
  CHECK(text.write("1234567890123456").has_value());
  CHECK(text.write("7").error() == ErrorCode::no_memory);
  account::mcp.set_ceiling(SIZE_MAX);
}

}  // namespace mcp_message_test
