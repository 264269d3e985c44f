#include <coir/format.h>

#include "http/text/characters.h"
#include "mcp/message/field_value.h"
#include "mcp/server/incoming.h"
#include "mcp/tools/schema_check.h"

namespace coir::mcp {
namespace {

// fields.cpp: fields of a request against its body, for incoming.h.

// values calls `judge` with each value of a field, and returns how many there are, or nothing where one is refused.
template <class Judge>
std::optional<unsigned> values(const http::Request& request, std::string_view name, Judge judge) noexcept {
  unsigned count = 0;
  for (const http::Header& line : request.headers) {
    if (!http::equals_ignoring_case(line.name, name)) continue;
    ++count;
    if (!judge(line.value)) return std::nullopt;
  }
  return count;
}

// compare tells what is wrong with a field that has to say `wanted`.
std::string_view compare(const http::Request& request, std::string_view name, std::string_view wanted, bool encoded,
                         std::span<char> room) noexcept {
  const auto found = values(
      request, name, [&](std::string_view value) { return encoded ? field_says(value, wanted) : value == wanted; });
  if (!found)
    return format(room, "Header mismatch: ", name, " is not what the body says, ", json_quoted(wanted.substr(0, 64)));
  if (*found == 0) return format(room, "Header mismatch: ", name, " is missing");
  return {};
}

}  // namespace

std::string_view compare_fields(const Incoming& in, std::string_view version, std::span<char> room) noexcept {
  const http::Request& request = *in.request;
  if (const auto flaw = compare(request, kVersionField, version, false, room); !flaw.empty()) return flaw;
  if (const auto flaw = compare(request, kMethodField, in.message.method, false, room); !flaw.empty()) return flaw;
  const std::string_view method = in.message.method;
  const bool by_name = method == "tools/call" || method == "prompts/get";
  if (!by_name && method != "resources/read") return {};
  const auto name = text_of(in.param(by_name ? "name" : "uri"));
  // A request without it is refused for that.
  return name ? compare(request, kNameField, *name, true, room) : std::string_view();
}

std::string_view compare_mirrored(const Incoming& in, const Tool& tool, std::span<char> room) noexcept {
  for (const Field& field : tool.fields) {
    if (field.header.empty()) continue;
    const auto arguments = object_of(in.param("arguments"));
    char name_room[96];
    const std::string_view name = format(name_room, kParameterFieldPrefix, field.header);
    const auto value = member_of(arguments, field.name);
    const auto found = values(*in.request, name, [&](std::string_view text) {
      if (!value) return false;
      if (const auto wanted = text_of(value)) return field_says(text, *wanted);
      char decoded_room[32];
      const auto decoded = decode_field_value(text, decoded_room);
      return decoded && same_as_value(*value, *decoded);
    });
    if (!found) return format(room, "Header mismatch: ", name, " is not what the body says");
    if (*found == 0 && value) return format(room, "Header mismatch: ", name, " is missing");
  }
  return {};
}

}  // namespace coir::mcp
