#include <coir/format.h>

#include "mcp/server/incoming.h"

namespace coir::mcp {
namespace {

// methods.cpp: methods that both eras have, and which they are, for incoming.h.

enum class Since : std::uint8_t { both, legacy, modern };
enum class Needs : std::uint8_t { nothing, tools, resources, prompts, completions };

bool completes(const ServerCore& core) noexcept {
  if (!core.options.sources.empty()) return true;
  for (const Prompt& each : core.options.prompts) {
    if (each.complete != nullptr) return true;
  }
  for (const ResourceTemplate& each : core.options.templates) {
    if (each.complete != nullptr) return true;
  }
  return false;
}

void empty(Incoming& in) noexcept {
  Text out(in.room, in.core.options.max_result_bytes);
  begin_result(in, out);
  end_result(in, out);
  send_result(in, out);
}

void discover(Incoming& in) noexcept {
  Text out(in.room, in.core.options.max_result_bytes);
  begin_result(in, out);
  member(out, "supportedVersions");
  const char* comma = "[";
  for (std::size_t i = kVersions; i > 0; --i) {
    put(out, comma);
    put_quoted(out, version_text(static_cast<Version>(i - 1)));
    comma = ",";
  }
  put(out, "]");
  write_capabilities(in, out);
  if (!in.core.options.instructions.empty()) {
    member(out, "instructions");
    put_quoted(out, in.core.options.instructions);
  }
  cacheable(in, out, in.core.options.list_lifetime.count(), false);
  end_result(in, out);
  send_result(in, out);
}

void set_level(Incoming& in) noexcept {
  const auto level = find_log_level(text_of(in.param("level")).value_or(std::string_view()));
  if (!level) return refuse(in, 200, kInvalidParams, "level: none of the levels");
  in.session->level = *level;
  empty(in);
}

void subscribe(Incoming& in) noexcept {
  constexpr std::size_t kMost = 64;
  const auto uri = text_of(in.param("uri"));
  if (!uri) return refuse(in, 200, kInvalidParams, "uri: a text is wanted");
  in.name = *uri;
  if (in.message.method == "resources/unsubscribe") {
    in.core.listeners.unwatch(in.session->interests, *uri);
    return empty(in);
  }
  const auto watched = in.core.watch(in.session->interests, *uri, kMost);
  if (watched) return empty(in);
  if (watched.error() == ErrorCode::limit)
    return refuse(in, 200, kInvalidParams, "too many subscriptions, or too long a URI");
  refuse(in, 503, kBusy, describe_unwatched(watched.error()));
}

struct ServedMethod {
  std::string_view name;
  Since since;
  Needs needs;
  void (*answer)(Incoming& in) noexcept;
};

constexpr ServedMethod kMethods[] = {
    {"tools/call", Since::both, Needs::tools, answer_call},
    {"tools/list", Since::both, Needs::tools, [](Incoming& in) noexcept { answer_list(in, ItemKind::tools); }},
    {"resources/read", Since::both, Needs::resources, answer_read},
    {"resources/list", Since::both, Needs::resources,
     [](Incoming& in) noexcept { answer_list(in, ItemKind::resources); }},
    {"resources/templates/list", Since::both, Needs::resources,
     [](Incoming& in) noexcept { answer_list(in, ItemKind::templates); }},
    {"prompts/get", Since::both, Needs::prompts, answer_prompt},
    {"prompts/list", Since::both, Needs::prompts, [](Incoming& in) noexcept { answer_list(in, ItemKind::prompts); }},
    {"completion/complete", Since::both, Needs::completions, answer_complete},
    {"server/discover", Since::modern, Needs::nothing, discover},
    {"ping", Since::legacy, Needs::nothing, empty},
    {"logging/setLevel", Since::legacy, Needs::nothing, set_level},
    {"resources/subscribe", Since::legacy, Needs::resources, subscribe},
    {"resources/unsubscribe", Since::legacy, Needs::resources, subscribe},
};

const ServedMethod* find(const ServerCore& core, Version version, std::string_view name) noexcept {
  for (const ServedMethod& each : kMethods) {
    if (each.name != name) continue;
    if (each.since == Since::legacy && era_of(version) != Era::legacy) return nullptr;
    if (each.since == Since::modern && era_of(version) != Era::modern) return nullptr;
    switch (each.needs) {
      case Needs::nothing:
        return &each;
      case Needs::tools:
        return core.offers(ItemKind::tools) ? &each : nullptr;
      case Needs::resources:
        return core.offers(ItemKind::resources) ? &each : nullptr;
      case Needs::prompts:
        return core.offers(ItemKind::prompts) ? &each : nullptr;
      case Needs::completions:
        return completes(core) ? &each : nullptr;
    }
  }
  return nullptr;
}

}  // namespace

bool is_known_method(const ServerCore& core, Version version, std::string_view method) noexcept {
  return find(core, version, method) != nullptr;
}

void answer_method(Incoming& in) noexcept {
  find(in.core, in.version, in.message.method)->answer(in);
}

void write_capabilities(const Incoming& in, Text& out) noexcept {
  member(out, "capabilities");
  put(out, "{\"logging\":{}");
  if (completes(in.core)) put(out, ",\"completions\":{}");
  if (in.core.offers(ItemKind::tools)) put(out, R"(,"tools":{"listChanged":true})");
  if (in.core.offers(ItemKind::prompts)) put(out, R"(,"prompts":{"listChanged":true})");
  if (in.core.offers(ItemKind::resources)) put(out, R"(,"resources":{"subscribe":true,"listChanged":true})");
  put(out, "}");
}

CapabilitySet read_capabilities(const std::optional<JsonView>& capabilities) noexcept {
  CapabilitySet set = 0;
  for (const Capability each : {Capability::sampling, Capability::elicitation, Capability::roots}) {
    if (object_of(member_of(capabilities, capability_text(each)))) {
      set = static_cast<CapabilitySet>(set | capability_set(each));
    }
  }
  return set;
}

}  // namespace coir::mcp
