#include "mcp/message/message.h"

#include "json/scan.h"

namespace coir::mcp {
namespace {

constexpr std::unexpected<RpcFlaw> flaw(int code, const char* what) noexcept {
  return std::unexpected(RpcFlaw{code, what});
}

std::optional<MessageId> read_id(const JsonView& value) noexcept {
  if (value.kind() == JsonKind::text)
    return MessageId{.given = true, .is_text = true, .text = value.text().value_or("")};
  if (value.kind() != JsonKind::number) return std::nullopt;
  const auto number = integer_of(value);
  if (!number) return std::nullopt;
  return MessageId{.given = true, .number = *number};
}

}  // namespace

std::expected<std::size_t, RpcFlaw> message_bytes(std::string_view text, const MessageLimits& limits) noexcept {
  if (text.size() > limits.json.max_bytes) return flaw(kInvalidRequest, "the message is longer than is allowed");
  const auto scan = coir::detail::scan_json(text, limits.json.max_depth);
  if (scan.too_deep) return flaw(kInvalidRequest, "the message is nested deeper than is allowed");
  if (scan.values > limits.max_values) return flaw(kInvalidRequest, "the message has more values than are allowed");
  return coir::detail::document_bytes(text.size(), scan);
}

std::expected<JsonDocument, RpcFlaw> parse_message(std::string_view text, std::span<char> memory) noexcept {
  auto document = JsonDocument::parse(text, memory, {.max_bytes = SIZE_MAX, .max_depth = SIZE_MAX});
  if (document) return std::move(*document);
  if (document.error().error == ErrorCode::invalid) return flaw(kParseError, "the message is no JSON");
  return flaw(kInvalidRequest, "the message is larger than is allowed");
}

std::optional<std::string_view> text_of(const std::optional<JsonView>& value) noexcept {
  if (!is_kind(value, JsonKind::text)) return std::nullopt;
  return value->text().value_or(std::string_view());
}

std::optional<std::int64_t> integer_of(const std::optional<JsonView>& value) noexcept {
  if (!is_kind(value, JsonKind::number)) return std::nullopt;
  const auto number = value->integer<std::int64_t>();
  if (!number) return std::nullopt;
  return *number;
}

bool is_kind(const std::optional<JsonView>& value, JsonKind kind) noexcept {
  return value && value->kind() == kind;
}

std::optional<JsonView> object_of(const std::optional<JsonView>& value) noexcept {
  return is_kind(value, JsonKind::object) ? value : std::nullopt;
}

std::optional<JsonView> member_of(const std::optional<JsonView>& object, std::string_view name) noexcept {
  return is_kind(object, JsonKind::object) ? object->find(name) : std::nullopt;
}

std::expected<Message, RpcFlaw> read_message(JsonView value, MessageId& id) noexcept {
  id = {};
  if (value.kind() != JsonKind::object) return flaw(kInvalidRequest, "a message is an object");
  // All members in one pass, and then the id first: the answer to what is wrong wants it.
  bool has_id = false;
  bool null_id = false;
  bool is_second = false;
  std::optional<JsonView> version, method, params;
  for (const auto [name, member] : value.members()) {
    // As find has it: the first of a name counts.
    if (name == "method") {
      if (!method) method = member;
    } else if (name == "params") {
      if (!params) params = member;
    } else if (name == "jsonrpc") {
      if (!version) version = member;
    } else if (name == "id") {
      is_second = has_id;
      if (is_second) break;
      has_id = true;
      null_id = member.kind() == JsonKind::null;
      if (const auto found = read_id(member)) id = *found;
    }
  }
  if (is_second) return flaw(kInvalidRequest, "the message has two ids");
  if (text_of(version) != "2.0") return flaw(kInvalidRequest, "jsonrpc: \"2.0\" is wanted");
  Message message{.kind = MessageKind::notification};
  message.id = id;
  if (method && !is_kind(method, JsonKind::null)) {
    const auto text = text_of(method);
    if (!text || text->empty()) return flaw(kInvalidRequest, "method: a text is wanted");
    if (has_id && !id.given) return flaw(kInvalidRequest, "id: a text or a whole number is wanted");
    message.method = *text;
    if (params && !is_kind(params, JsonKind::null)) message.params = params;
    if (message.params && !is_kind(message.params, JsonKind::object)) {
      return flaw(kInvalidParams, "params: an object is wanted");
    }
    message.kind = has_id ? MessageKind::request : MessageKind::notification;
    return message;
  }
  if (const auto result = value.find("result")) {
    if (!id.given) return flaw(kInvalidRequest, "id: a text or a whole number is wanted");
    if (!is_kind(result, JsonKind::object)) return flaw(kInvalidRequest, "result: an object is wanted");
    message.kind = MessageKind::response;
    message.params = result;
    return message;
  }
  const auto error = object_of(value.find("error"));
  const auto code = integer_of(member_of(error, "code"));
  if (!error || !code || *code < INT32_MIN || *code > INT32_MAX) {
    return flaw(kInvalidRequest, "a message has a method, a result or an error");
  }
  if (has_id && !id.given && !null_id) return flaw(kInvalidRequest, "id: a text or a whole number is wanted");
  message.kind = MessageKind::error;
  return message;
}

JsonWriter& begin_message(JsonWriter& out) noexcept {
  return out.object().member("jsonrpc", "2.0");
}

void write_id(JsonWriter& out, const MessageId& id) noexcept {
  if (!id.given) {
    out.null();
  } else if (id.is_text) {
    out.value(id.text);
  } else {
    out.value(id.number);
  }
}

void write_error(JsonWriter& out, const MessageId& id, int code, std::string_view message,
                 std::string_view data) noexcept {
  begin_message(out);
  if (id.given) write_id(out.name("id"), id);
  out.name("error").object().member("code", code).member("message", message);
  if (!data.empty()) out.name("data").raw(data);
  out.end().end();
}

JsonWriter& begin_request(JsonWriter& out, const MessageId& id, std::string_view method) noexcept {
  begin_message(out);
  write_id(out.name("id"), id);
  return out.member("method", method).name("params").object();
}

JsonWriter& begin_notification(JsonWriter& out, std::string_view method) noexcept {
  return begin_message(out).member("method", method).name("params").object();
}

}  // namespace coir::mcp
