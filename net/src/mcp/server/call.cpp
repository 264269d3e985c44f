#include <coir/mcp/detail/call.h>

#include <coir/mcp/detail/tool.h>

#include "http/text/base64.h"
#include "mcp/message/raw_json.h"
#include "mcp/server/call_state.h"
#include "mcp/tools/schema_check.h"

namespace coir::mcp {
namespace {

// call.cpp: what a call answers and tells on its way.

void put_member(Text& out, std::string_view name, std::string_view value) noexcept {
  member(out, name);
  put_quoted(out, value);
}

void put_base64(Text& out, std::string_view bytes) noexcept {
  put(out, "\"");
  const std::size_t size = http::base64_bytes(bytes.size());
  if (char* const to = out.take(size)) http::encode_base64(bytes, {to, size});
  put(out, "\"");
}

// begin_piece begins a piece of content of a tool or a prompt: {"type":...; end_piece ends it.
bool begin_piece(CallState& call, std::string_view type) noexcept {
  if (call.kind != CallKind::tool && call.kind != CallKind::prompt) return false;
  if (!call.piece()) return false;
  if (call.kind == CallKind::prompt) {
    put(call.out, call.role == Role::user ? R"({"role":"user","content":)" : R"({"role":"assistant","content":)");
  }
  put(call.out, R"({"type":")");
  put(call.out, type);
  put(call.out, "\"");
  return true;
}

void end_piece(CallState& call) noexcept {
  put(call.out, call.kind == CallKind::prompt ? "}}" : "}");
}

void put_bytes_piece(CallState& call, std::string_view type, std::string_view bytes,
                     std::string_view media_type) noexcept {
  if (!begin_piece(call, type)) return;
  member(call.out, "data");
  put_base64(call.out, bytes);
  put_member(call.out, "mimeType", media_type);
  end_piece(call);
}

// begin_contents begins what a resource's read answers.
bool begin_contents(CallState& call, std::string_view media_type) noexcept {
  if (!call.piece()) return false;
  put(call.out, "{");
  put_member(call.out, "uri", call.name);
  if (media_type.empty()) media_type = call.media_type;
  if (!media_type.empty()) put_member(call.out, "mimeType", media_type);
  return true;
}

bool begin_embedded(CallState& call, std::string_view uri, std::string_view media_type) noexcept {
  if (!begin_piece(call, "resource")) return false;
  put(call.out, R"(,"resource":{)");
  put_member(call.out, "uri", uri);
  if (!media_type.empty()) put_member(call.out, "mimeType", media_type);
  return true;
}

}  // namespace

void* Call::context_pointer() const noexcept {
  return state_.in.core.options.context;
}

std::string_view Call::name() const noexcept {
  return state_.name;
}

std::string_view Call::principal() const noexcept {
  return state_.in.who.name();
}

Version Call::version() const noexcept {
  return state_.in.version;
}

Deadline Call::deadline() const noexcept {
  return state_.deadline;
}

JsonView Call::arguments() const noexcept {
  return (*state_.in.message.params)["arguments"];
}

std::string_view Call::argument(std::string_view name) const noexcept {
  if (state_.kind == CallKind::resource) return template_parameter(state_.uri_template, state_.name, name);
  const auto holder =
      state_.kind == CallKind::completion ? object_of(state_.in.param("context")) : state_.in.message.params;
  return text_of(member_of(member_of(holder, "arguments"), name)).value_or(std::string_view());
}

void Call::text(std::string_view text) noexcept {
  if (state_.kind == CallKind::resource) {
    if (!begin_contents(state_, {})) return;
    put_member(state_.out, "text", text);
    return put(state_.out, "}");
  }
  if (!begin_piece(state_, "text")) return;
  put_member(state_.out, "text", text);
  end_piece(state_);
}

void Call::image(std::string_view bytes, std::string_view media_type) noexcept {
  put_bytes_piece(state_, "image", bytes, media_type);
}

void Call::audio(std::string_view bytes, std::string_view media_type) noexcept {
  put_bytes_piece(state_, "audio", bytes, media_type);
}

void Call::blob(std::string_view bytes, std::string_view media_type) noexcept {
  if (state_.kind != CallKind::resource || !begin_contents(state_, media_type)) return;
  member(state_.out, "blob");
  put_base64(state_.out, bytes);
  put(state_.out, "}");
}

void Call::embed_text(std::string_view uri, std::string_view media_type, std::string_view text) noexcept {
  if (!begin_embedded(state_, uri, media_type)) return;
  put_member(state_.out, "text", text);
  put(state_.out, "}");
  end_piece(state_);
}

void Call::embed_bytes(std::string_view uri, std::string_view media_type, std::string_view bytes) noexcept {
  if (!begin_embedded(state_, uri, media_type)) return;
  member(state_.out, "blob");
  put_base64(state_.out, bytes);
  put(state_.out, "}");
  end_piece(state_);
}

void Call::link(std::string_view uri, std::string_view name, std::string_view media_type) noexcept {
  // The first revision has no links.
  if (state_.in.version < Version::v2025_06_18) return text(uri);
  if (!begin_piece(state_, "resource_link")) return;
  put_member(state_.out, "uri", uri);
  put_member(state_.out, "name", name);
  if (!media_type.empty()) put_member(state_.out, "mimeType", media_type);
  end_piece(state_);
}

void Call::role(Role role) noexcept {
  state_.role = role;
}

bool Call::suggest(std::string_view value) noexcept {
  constexpr std::size_t kMost = 100;
  if (state_.kind != CallKind::completion || state_.pieces >= kMost || !state_.piece()) return false;
  put_quoted(state_.out, value);
  return true;
}

void Call::structured(std::span<const Field> fields, const void* object) noexcept {
  if (state_.kind != CallKind::tool) return;
  {
    JsonWriter out(state_.structured);
    write_fields(out, fields, object);
    static_cast<void>(out.finish());
  }
  if (!state_.structured.failed()) text(state_.structured.view());
}

void Call::structured_json(std::string_view json) noexcept {
  if (state_.kind != CallKind::tool) return;
  put(state_.structured, json);
  if (!state_.structured.failed()) text(json);
}

void Call::fail(std::string_view why) noexcept {
  if (state_.kind != CallKind::tool) return refuse(kInternalError, why);
  state_.failed = true;
  text(why);
}

void Call::refuse(int code, std::string_view message, std::string_view data) noexcept {
  if (state_.refused) return;
  state_.refused = true;
  mcp::refuse(state_.in, code == kMissingCapability ? 400 : 200, code, message, data);
}

void Call::result_json(std::string_view json) noexcept {
  if (state_.refused || state_.whole) return;
  Text& out = state_.out;
  out.cut(0);
  begin_result(state_.in, out);
  // No member stands there twice: where the other server says what kind of a result it is, or who it is, ours go.
  constexpr std::string_view kResultBegin = "\"result\":{";
  if (state_.in.era() == Era::modern && !out.failed()) {
    const auto says = [json](std::string_view name) { return detail::raw_member(json, name).data() != nullptr; };
    const bool says_type = says("resultType");
    if (says_type || says("_meta")) {
      out.cut(out.view().rfind(kResultBegin) + kResultBegin.size());
      if (!says_type) put(out, R"("resultType":"complete")");
    }
  }
  json = json.size() >= 2 && json.front() == '{' ? json.substr(1) : std::string_view("}");
  const std::size_t first = json.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && json[first] != '}' && !out.failed() && out.view().back() != '{') put(out, ",");
  put(out, json);
  put(out, "}");
  state_.whole = true;
}

bool detail::read_fields(Call& call, std::span<const Field> fields, JsonView arguments, void* object) noexcept {
  char room[256];
  const std::optional<JsonView> given = arguments.kind() ? std::optional<JsonView>(arguments) : std::nullopt;
  const std::string_view flaw = check_fields(fields, given, object, room);
  if (flaw.empty()) return true;
  call.fail(flaw);
  return false;
}

}  // namespace coir::mcp
