#include "mcp/client/parameter_fields.h"

#include <coir/json.h>
#include <coir/mcp/detail/protocol.h>

#include <cstring>

#include "http/text/characters.h"
#include "mcp/client/http_call.h"
#include "mcp/client/wire/field_value.h"

namespace coir::mcp::detail {

namespace {

constexpr std::string_view kMark = "x-mcp-header";

std::string_view unquoted(std::string_view text) noexcept {
  return text.size() >= 2 && text.front() == '"' ? text.substr(1, text.size() - 2) : std::string_view();
}

// decoded_in decodes a text at the front of `room`, where it lies until that is written to. The document is gone by then.
std::expected<std::string_view, Error> decoded_in(std::span<char> room, std::string_view json) noexcept {
  const auto document = JsonDocument::parse(json, room, {.max_bytes = room.size()});
  if (!document) return std::unexpected(document.error().error);
  return document->root().text();
}

// marks counts the marks of a schema wherever they stand: members of that name whose value is a text.
std::size_t marks(std::string_view schema) noexcept {
  std::size_t count = 0;
  for (std::size_t at = 0; at < schema.size(); ++at) {
    if (schema[at] != '"') continue;
    const std::size_t begin = at + 1;
    for (++at; at < schema.size() && schema[at] != '"'; ++at) {
      if (schema[at] == '\\') ++at;
    }
    if (at >= schema.size() || schema.substr(begin, at - begin) != kMark) continue;
    std::string_view behind = http::trim(schema.substr(at + 1));
    if (!behind.starts_with(':')) continue;
    while (!behind.empty() && (behind.front() == ':' || behind.front() == ' ' || behind.front() == '\n')) {
      behind.remove_prefix(1);
    }
    if (behind.starts_with('"')) ++count;
  }
  return count;
}

}  // namespace

ParameterFields::ParameterFields(std::string_view schema, std::span<char> room) noexcept : room_(room) {
  levels_[0] = {RawMembers(raw_member(schema, "properties")), {}};
  depth_ = 1;
}

bool ParameterFields::next_marked(std::string_view& name, std::string_view& property) noexcept {
  while (depth_ > 0) {
    const auto member = levels_[depth_ - 1].properties.next();
    if (!member) {
      --depth_;
      continue;
    }
    name = member->name;
    property = member->value;
    const std::string_view inner = raw_member(property, "properties");
    if (inner.starts_with('{') && depth_ < kMostDepth) levels_[depth_++] = {RawMembers(inner), name};
    if (raw_member(property, kMark).starts_with('"')) return true;
  }
  return false;
}

std::string_view ParameterFields::argument_at(std::string_view arguments, std::string_view name) const noexcept {
  for (std::size_t level = 1; level < depth_; ++level) {
    if (levels_[level].name.data() == name.data()) break;  // the property has properties itself
    arguments = raw_member(arguments, levels_[level].name);
    if (!arguments.starts_with('{')) return {};
  }
  return raw_member(arguments, name);
}

std::string_view ParameterFields::keep(std::string_view before, std::string_view text) noexcept {
  const std::size_t bytes = before.size() + text.size();
  if (bytes > room_.size()) {
    full_ = true;
    return {};
  }
  char* const at = room_.data();
  std::memmove(at + before.size(), text.data(), text.size());
  if (!before.empty()) std::memcpy(at, before.data(), before.size());
  room_ = room_.subspan(bytes);
  return {at, bytes};
}

// value_of is an argument as a field says it. A text is decoded in the room, and encoded anew where it is not plain.
std::string_view ParameterFields::value_of(std::string_view argument) noexcept {
  if (!argument.starts_with('"')) return argument;
  const std::string_view inside = unquoted(argument);
  if (inside.find('\\') == inside.npos && is_plain_value(inside)) return inside;
  const auto text = decoded_in(room_, argument);
  if (!text) {
    full_ = true;
    return {};
  }
  const std::string_view kept = keep({}, *text);
  if (is_plain_value(kept)) return kept;
  const std::string_view encoded = encode_value(kept, room_);
  full_ = full_ || encoded.empty();
  room_ = room_.subspan(encoded.size());
  return encoded;
}

std::optional<ParameterFields::Field> ParameterFields::next(std::string_view arguments) noexcept {
  std::string_view name, property;
  while (!full_ && next_marked(name, property)) {
    const std::string_view argument = argument_at(arguments, name);
    if (argument.empty() || argument == "null" || argument.starts_with('{') || argument.starts_with('[')) continue;
    const std::string_view field = keep(kParameterFieldPrefix, unquoted(raw_member(property, kMark)));
    const std::string_view value = value_of(argument);
    if (!full_) return Field{field, value};
  }
  return std::nullopt;
}

bool ParameterFields::sound(std::string_view schema) noexcept {
  ParameterFields fields(schema, {});
  std::string_view names[HttpCall::kMostParameters];
  std::size_t count = 0;
  std::string_view name, property;
  while (fields.next_marked(name, property)) {
    const std::string_view mark = unquoted(raw_member(property, kMark));
    const std::string_view type = unquoted(raw_member(property, "type"));
    if (!http::is_token(mark) || (type != "string" && type != "integer" && type != "boolean")) return false;
    if (count == std::size(names)) return false;
    for (std::size_t i = 0; i < count; ++i) {
      if (http::equals_ignoring_case(names[i], mark)) return false;
    }
    names[count++] = mark;
  }
  return marks(schema) == count;
}

}  // namespace coir::mcp::detail
