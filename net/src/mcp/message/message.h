#pragma once

#include <coir/json.h>
#include <coir/json_writer.h>
#include <coir/mcp/detail/protocol.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string_view>

namespace coir::mcp {

// MessageLimits bounds a text before it is parsed: its bytes, its depth, and how many values and names it has.
struct MessageLimits {
  JsonLimits json = {.max_bytes = 64 * 1024, .max_depth = 32};
  std::size_t max_values = 4096;
};

// RpcFlaw is what is wrong with a message, as its sender is told.
struct RpcFlaw {
  int code;
  const char* what;  // static
};

// message_bytes is how much memory parse_message needs. Errors: kInvalidRequest (the text's size, depth or number of values
// is over a limit).
std::expected<std::size_t, RpcFlaw> message_bytes(std::string_view text, const MessageLimits& limits) noexcept;
// parse_message parses a text that message_bytes has looked at into memory of that size, as JsonDocument::parse does.
// Errors: kParseError, kInvalidRequest (over a limit).
std::expected<JsonDocument, RpcFlaw> parse_message(std::string_view text, std::span<char> memory) noexcept;

// MessageId is the id of a request: a text or a whole number.
struct MessageId {
  bool given = false;
  bool is_text = false;
  std::int64_t number = 0;
  std::string_view text = {};

  friend bool operator==(const MessageId&, const MessageId&) = default;
};

enum class MessageKind : std::uint8_t { request, notification, response, error };

// Message is one message of JSON-RPC 2.0. Its views lie in the document.
struct Message {
  MessageKind kind = MessageKind::notification;
  MessageId id = {};
  std::string_view method = {};
  std::optional<JsonView> params = {};  // an object, or absent; of a response its result
};

// read_message reads a value as a message. `id` receives the id as far as there is a valid one, for the answer to what
// is none. Errors: kInvalidRequest, kInvalidParams (params are no object).
std::expected<Message, RpcFlaw> read_message(JsonView value, MessageId& id) noexcept;

// text_of and its like are absent unless the value is of that kind.
std::optional<std::string_view> text_of(const std::optional<JsonView>& value) noexcept;
std::optional<std::int64_t> integer_of(const std::optional<JsonView>& value) noexcept;
std::optional<JsonView> object_of(const std::optional<JsonView>& value) noexcept;
std::optional<JsonView> member_of(const std::optional<JsonView>& object, std::string_view name) noexcept;
bool is_kind(const std::optional<JsonView>& value, JsonKind kind) noexcept;

// Writing. begin_message opens an object with "jsonrpc"; the caller ends it.
JsonWriter& begin_message(JsonWriter& out) noexcept;
void write_id(JsonWriter& out, const MessageId& id) noexcept;  // the value; null where there is none
// write_error writes a whole error response, without an id where none is known. `data` is JSON or empty.
void write_error(JsonWriter& out, const MessageId& id, int code, std::string_view message,
                 std::string_view data = {}) noexcept;
// begin_request opens {"jsonrpc","id","method","params":{ ; the caller writes the members of params and ends both.
JsonWriter& begin_request(JsonWriter& out, const MessageId& id, std::string_view method) noexcept;
// begin_notification is the same without an id.
JsonWriter& begin_notification(JsonWriter& out, std::string_view method) noexcept;

}  // namespace coir::mcp
