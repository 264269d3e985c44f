#include "mcp/client/envelope.h"

#include <coir/json_writer.h>

#include "mcp/message/raw_json.h"

namespace coir::mcp::detail {

namespace {

void write_members(JsonWriter& out, std::string_view object) noexcept {
  RawMembers members(object);
  while (const auto member = members.next()) out.name(member->name).raw(member->value);
}

void write_meta(JsonWriter& out, const McpClientState& state, const Agreement& session, const Ask& ask) noexcept {
  if (session.modern()) {
    out.member(kVersionKey, version_text(*session.version));
    out.name(kClientInfoKey).object();
    out.member("name", state.options.name).member("version", state.options.version).end();
    out.name(kCapabilitiesKey);
    write_capabilities(out, ask.options.capabilities != nullptr ? *ask.options.capabilities : offered(state.options));
    if (!ask.options.log_level.empty()) out.member(kLogLevelKey, ask.options.log_level);
  }
  if (ask.options.told) out.member("progressToken", ask.id);
  write_members(out, ask.options.meta);
}

}  // namespace

CapabilitySet offered(const McpClientOptions& options) noexcept {
  unsigned set = 0;
  if (!options.asked) return 0;
  if (options.sampling) set |= capability_set(Capability::sampling);
  if (options.elicitation) set |= capability_set(Capability::elicitation);
  if (options.roots) set |= capability_set(Capability::roots);
  return static_cast<CapabilitySet>(set);
}

void write_capabilities(JsonWriter& out, CapabilitySet capabilities) noexcept {
  out.object();
  for (const Capability each : {Capability::sampling, Capability::elicitation, Capability::roots}) {
    if ((capabilities & capability_set(each)) != 0) out.name(capability_text(each)).object().end();
  }
  out.end();
}

std::expected<void, Error> write_request(GrowingText& into, const McpClientState& state, const Agreement& session,
                                         const Ask& ask) noexcept {
  JsonWriter out(into);
  out.object().member("jsonrpc", "2.0").member("id", ask.id).member("method", ask.request.method);
  const bool wants_meta = session.modern() || bool(ask.options.told) || !ask.options.meta.empty();
  if (wants_meta || !ask.request.params.empty() || !ask.more.empty()) {
    out.name("params").object();
    if (wants_meta) {
      out.name("_meta").object();
      write_meta(out, state, session, ask);
      out.end();
    }
    write_members(out, ask.request.params);
    write_members(out, ask.more);
    out.end();
  }
  out.end();
  return out.finish();
}

[[gnu::noinline]] std::expected<void, Error> write_named(GrowingText& into, std::string_view key, std::string_view name,
                                                         std::string_view arguments) noexcept {
  JsonWriter out(into);
  out.object().member(key, name);
  if (!arguments.empty()) out.name("arguments").raw(arguments);
  out.end();
  return out.finish();
}

}  // namespace coir::mcp::detail
