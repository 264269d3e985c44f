// A client of MCP for the official conformance suite, whose servers judge it: it lists the tools of the server at an
// address and calls each, or those that MCP_CONFORMANCE_CONTEXT names, and accepts what it is asked with the defaults of
// the schema. usage: mcp_client_peer URL
#include <coir/event.h>
#include <coir/fiber.h>
#include <coir/json_fields.h>
#include <coir/mcp/client.h>
#include <coir/runtime.h>
#include <coir/worker_stack.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <optional>

using namespace std::chrono_literals;
using namespace coir::mcp;
using coir::Deadline;
using coir::JsonDocument;
using coir::JsonText;
using coir::JsonView;
using coir::JsonWriter;

namespace {

constexpr std::size_t kMostTools = 32, kMostBytes = 16 * 1024;

struct Tool {
  char name[128];
  char schema[kMostBytes];
  std::size_t schema_bytes;
};
Tool g_tools[kMostTools];
std::size_t g_count;
char g_arguments[kMostBytes];

std::string_view text_of(std::optional<JsonView> value) {
  if (!value || value->kind() != coir::JsonKind::text) return {};
  const auto text = value->text();
  return text ? *text : std::string_view();
}

// write_value writes what a schema's property may be: its default, where it has one.
void write_value(JsonWriter& out, JsonView property) {
  if (const auto given = property.find("default")) return copy_json(out, *given);
  const std::string_view type = text_of(property.find("type"));
  if (type == "integer" || type == "number") {
    out.value(3);
  } else if (type == "boolean") {
    out.value(true);
  } else if (type == "object") {
    out.object().end();
  } else if (type == "array") {
    out.array().end();
  } else {
    out.value("a value");
  }
}

void write_object(JsonWriter& out, std::optional<JsonView> schema) {
  out.object();
  const auto properties = schema ? schema->find("properties") : std::nullopt;
  if (properties && properties->kind() == coir::JsonKind::object) {
    for (const auto [name, property] : properties->members()) write_value(out.name(name), property);
  }
  out.end();
}

bool answer(const Question& question, JsonWriter& out) noexcept {
  if (question.method != "elicitation/create") return false;
  out.object().member("action", "accept").name("content");
  write_object(out, question.params.find("requestedSchema"));
  out.end();
  return true;
}

void call(McpClient& client, std::string_view name, std::string_view arguments, std::string_view schema) {
  const auto answered = client.call(name, arguments, {.deadline = Deadline::after(20s), .input_schema = schema});
  coir::on_worker_stack([&] {
    fprintf(stderr, "%.*s: %.*s\n", static_cast<int>(name.size()), name.data(),
            answered ? static_cast<int>(answered->text().size()) : 6, answered ? answered->text().data() : "failed");
  });
}

int run(const char* url) {
  auto client = McpClient::create({.url = url, .elicitation = true, .asked = answer});
  if (!client) return 1;
  const auto listed = client->list(Listed::tools,
                                   [](JsonView item, std::string_view text) noexcept {
                                     const std::string_view name = text_of(item.find("name"));
                                     const std::size_t at = text.find("\"inputSchema\":");
                                     if (g_count == kMostTools || name.size() >= sizeof Tool::name || at == text.npos)
                                       return true;
                                     Tool& tool = g_tools[g_count++];
                                     memcpy(tool.name, name.data(), name.size());
                                     JsonText schema(tool.schema);
                                     JsonWriter out(schema);
                                     copy_json(out, item["inputSchema"]);
                                     if (!out.finish()) return false;
                                     tool.schema_bytes = schema.view().size();
                                     return true;
                                   },
                                   {.deadline = Deadline::after(20s)});
  if (!listed) return 2;
  // A legacy server may ask on its stream of changes, as soon as that is there.
  coir::Event listens;
  const CallOptions listening{.told = [&](const Notification&) { listens.set(); }};
  auto listener = coir::spawn([&] {
    static_cast<void>(client->listen({.tools = true}, listening));
    listens.set();
  });
  static_cast<void>(listens.wait(Deadline::after(2s)));
  const char* const context = getenv("MCP_CONFORMANCE_CONTEXT");
  auto given = JsonDocument::parse(context == nullptr ? "{}" : context, {.max_bytes = kMostBytes});
  const auto calls = given ? given->root().find("toolCalls") : std::nullopt;
  for (std::size_t i = 0; i < g_count; ++i) {
    const Tool& tool = g_tools[i];
    const std::string_view schema(tool.schema, tool.schema_bytes);
    bool named = false;
    if (calls) {
      for (const JsonView each : calls->elements()) {
        if (text_of(each.find("name")) != tool.name) continue;
        JsonText arguments(g_arguments);
        JsonWriter out(arguments);
        copy_json(out, each["arguments"]);
        named = out.finish().has_value();
        call(*client, tool.name, arguments.view(), schema);
      }
    }
    if (named || calls) continue;
    const auto document = JsonDocument::parse(schema, {.max_bytes = kMostBytes, .max_depth = 32});
    if (!document) continue;
    JsonText arguments(g_arguments);
    JsonWriter out(arguments);
    if (std::string_view(tool.name) == "json_schema_echo" && i > 0) {
      // The client sends back the schema that came with the tool before.
      out.object().name("schema").raw({g_tools[0].schema, g_tools[0].schema_bytes}).end();
    } else {
      write_object(out, document->root());
    }
    if (out.finish()) call(*client, tool.name, arguments.view(), schema);
  }
  static_cast<void>(listener.cancel());
  static_cast<void>(listener.join());
  static_cast<void>(client->leave(Deadline::after(2s)));
  return 0;
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) return 64;
  return coir::run({.workers = 1, .default_stack = 64 * 1024}, [&] { return run(words[1]); });
}
