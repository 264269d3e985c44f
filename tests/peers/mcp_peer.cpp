// A server with all that the official conformance suite of MCP asks for, on the public interface alone. It prints its
// port, and ends with SIGTERM.
//
//   mcp_peer [PORT]

#include <coir/fiber.h>
#include <coir/format.h>
#include <coir/http/routes.h>
#include <coir/mcp.h>
#include <stdlib.h>

#include "mcp_peer_asks.h"
#include "tests/support/serve_printed.h"

using namespace std::chrono_literals;
namespace http = coir::http;
namespace mcp = coir::mcp;

namespace {

using mcp::Call;

// A red pixel, and a sound of nothing.
constexpr char kPng[] =
    "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x8\2\0\0\0\x90wS\xde\0\0\0\fIDATx\x9c"
    "c\xf8\xcf\xc0\0\0\3\1\1\0\xc9\xfe\x92\xef\0\0\0\0IEND\xae"
    "B`\x82";
constexpr std::string_view kImage(kPng, sizeof kPng - 1);
constexpr char kWav[] = "RIFF$\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0@\x1f\0\0@\x1f\0\0\1\0\x8\0data\0\0\0\0";
constexpr std::string_view kSound(kWav, sizeof kWav - 1);

void simple_text(Call& call) {
  call.text("This is a simple text response for testing.");
}
void image_content(Call& call) {
  call.image(kImage, "image/png");
}
void audio_content(Call& call) {
  call.audio(kSound, "audio/wav");
}
void embedded_resource(Call& call) {
  call.embed_text("test://embedded-resource", "text/plain", "This is an embedded resource content.");
}
void multiple_content_types(Call& call) {
  call.text("Multiple content types test:");
  call.image(kImage, "image/png");
  call.embed_text("test://mixed-content-resource", "application/json", R"({"test":"data","value":123})");
}
void error_handling(Call& call) {
  call.fail("This tool intentionally returns an error for testing");
}
void tool_with_progress(Call& call) {
  for (const int done : {0, 50, 100}) {
    call.progress(done, 100);
    if (!coir::sleep(50ms)) return;
  }
  call.text("done");
}
void tool_with_logging(Call& call) {
  call.log(mcp::LogLevel::info, "Tool execution started");
  if (!coir::sleep(50ms)) return;
  call.log(mcp::LogLevel::info, "Tool processing data");
  if (!coir::sleep(50ms)) return;
  call.log(mcp::LogLevel::info, "Tool execution completed");
  call.text("done");
}
void logging_tool(Call& call) {
  call.log(mcp::LogLevel::info, "a line that only those hear who have asked for it");
  call.text("logged");
}
void reconnection(Call& call) {
  call.disconnect();
  if (coir::sleep(100ms)) call.text("The client has come again.");
}
void never_ends(Call&) {
  static_cast<void>(coir::sleep(1h));
}

struct Mirrored {
  std::string_view region;
  int priority = 0;
  bool verbose = false;
};
constexpr auto kMirrored =
    mcp::fields(mcp::field<&Mirrored::region>("region", "where").mirrored("Region"),
                mcp::field<&Mirrored::priority>("priority").between(0, 9).mirrored("Priority").optional(),
                mcp::field<&Mirrored::verbose>("verbose").mirrored("Verbose").optional());
void mirrored(Call& call, const Mirrored& arguments) {
  call.text(arguments.region);
}

struct Sum {
  double a = 0;
  double b = 0;
};
struct Total {
  double sum = 0;
};
constexpr auto kSum = mcp::fields(mcp::field<&Sum::a>("a"), mcp::field<&Sum::b>("b"));
constexpr auto kTotal = mcp::fields(mcp::field<&Total::sum>("sum"));
std::optional<Total> add_numbers(Call&, const Sum& arguments) {
  return Total{arguments.a + arguments.b};
}

struct App;
void change_tools(Call& call);
void change_prompts(Call& call);
void schema_tool(Call& call, coir::JsonView) {
  call.text("ok");
}

constexpr std::string_view kSchema2020 =
    R"({"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","$defs":{"address":{"$anchor":"addressDef",)"
    R"("type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},"properties":{"name":)"
    R"({"type":"string"},"address":{"$ref":"#/$defs/address"},"contactMethod":{"type":"string","enum":["phone","email"]},)"
    R"("phone":{"type":"string"},"email":{"type":"string"}},"allOf":[{"anyOf":[{"required":["phone"]},{"required":)"
    R"(["email"]}]}],"if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},"then":)"
    R"({"required":["phone"]},"else":{"required":["email"]},"additionalProperties":false})";

constexpr mcp::Tool kTools[] = {
    mcp::tool<simple_text>({.name = "test_simple_text", .description = "answers a text", .read_only = true}),
    mcp::tool<image_content>({.name = "test_image_content", .description = "answers a picture"}),
    mcp::tool<audio_content>({.name = "test_audio_content", .description = "answers a sound"}),
    mcp::tool<embedded_resource>({.name = "test_embedded_resource", .description = "answers a resource"}),
    mcp::tool<multiple_content_types>({.name = "test_multiple_content_types", .description = "answers three things"}),
    mcp::tool<error_handling>({.name = "test_error_handling", .description = "fails"}),
    mcp::tool<tool_with_progress>({.name = "test_tool_with_progress", .description = "tells how far it is"}),
    mcp::tool<tool_with_logging>({.name = "test_tool_with_logging", .description = "logs three lines"}),
    mcp::tool<logging_tool>({.name = "test_logging_tool", .description = "logs a line"}),
    mcp::tool<reconnection>({.name = "test_reconnection", .description = "has its client come again"}),
    mcp::tool<never_ends>({.name = "test_never_ends", .description = "waits", .deadline = 10s}),
    mcp::tool<sampling, kPrompt>({.name = "test_sampling", .description = "asks the client's model"}),
    mcp::tool<elicitation, kMessage>({.name = "test_elicitation", .description = "asks the client's user"}),
    mcp::tool<elicitation_defaults>({.name = "test_elicitation_sep1034_defaults", .description = "asks with defaults"}),
    mcp::tool<elicitation_enums>({.name = "test_elicitation_sep1330_enums", .description = "asks with choices"}),
    mcp::tool<missing_capability>({.name = "test_missing_capability", .description = "wants sampling"}),
    mcp::tool<streaming_elicitation>({.name = "test_streaming_elicitation", .description = "asks behind progress"}),
    mcp::tool<asks_name>({.name = "test_input_required_result_elicitation", .description = "asks for a name"}),
    mcp::tool<asks_model>({.name = "test_input_required_result_sampling", .description = "asks the model"}),
    mcp::tool<asks_roots>({.name = "test_input_required_result_list_roots", .description = "asks for folders"}),
    mcp::tool<asks_with_state>({.name = "test_input_required_result_request_state", .description = "keeps a state"}),
    mcp::tool<asks_thrice>({.name = "test_input_required_result_multiple_inputs", .description = "asks three things"}),
    mcp::tool<asks_in_rounds>({.name = "test_input_required_result_multi_round", .description = "asks twice"}),
    mcp::tool<asks_with_state>({.name = "test_input_required_result_tampered_state", .description = "keeps a state"}),
    mcp::tool<asks_what_it_may>({.name = "test_input_required_result_capabilities", .description = "asks what it may"}),
    mcp::tool<change_tools>({.name = "test_trigger_tool_change", .description = "changes the list of tools"}),
    mcp::tool<change_prompts>({.name = "test_trigger_prompt_change", .description = "changes the list of prompts"}),
    mcp::raw_tool(schema_tool, kSchema2020,
                  {.name = "json_schema_2020_12_tool", .description = "Tool with JSON Schema 2020-12 features"}),
    mcp::tool<mirrored, kMirrored>({.name = "test_mirrored", .description = "has arguments in fields"}),
    mcp::tool<add_numbers, kSum, kTotal>({.name = "test_structured", .description = "adds two numbers"}),
};

void static_text(Call& call) {
  call.text("This is the content of the static text resource.");
}
void static_binary(Call& call) {
  call.blob(kImage, "image/png");
}
void watched(Call& call) {
  call.text("a resource that may be watched");
}
void template_data(Call& call) {
  char text[160];
  call.text(coir::format(text, R"({"id":)", coir::json_quoted(call.argument("id")),
                         R"(,"templateTest":true,"data":"Data for ID: )", coir::cut(call.argument("id"), 40), "\"}"));
}

constexpr mcp::Resource kResources[] = {
    {.uri = "test://static-text",
     .name = "Static Text Resource",
     .description = "a text",
     .media_type = "text/plain",
     .read = static_text},
    {.uri = "test://static-binary",
     .name = "Static Binary Resource",
     .description = "a picture",
     .media_type = "image/png",
     .read = static_binary},
    {.uri = "test://watched-resource",
     .name = "Watched Resource",
     .description = "may be watched",
     .media_type = "text/plain",
     .read = watched},
};
constexpr mcp::ResourceTemplate kTemplates[] = {
    {.uri_template = "test://template/{id}/data",
     .name = "Template Resource",
     .description = "by its number",
     .media_type = "application/json",
     .read = template_data},
};

void simple_prompt(Call& call) {
  call.text("This is a simple prompt for testing.");
}
void prompt_with_arguments(Call& call) {
  char text[200];
  call.text(coir::format(text, "Prompt with arguments: arg1='", call.argument("arg1"), "', arg2='",
                         call.argument("arg2"), "'"));
}
void complete_arguments(Call& call, std::string_view, std::string_view value) {
  for (const std::string_view each : {"paris", "park", "party", "testing"}) {
    if (each.starts_with(value)) call.suggest(each);
  }
}
void prompt_with_resource(Call& call) {
  call.embed_text(call.argument("resourceUri"), "text/plain", "Embedded resource content for testing.");
  call.text("Please process the embedded resource above.");
}
void prompt_with_image(Call& call) {
  call.image(kImage, "image/png");
  call.text("Please analyze the image above.");
}

constexpr mcp::PromptArgument kTwo[] = {{.name = "arg1", .description = "First test argument", .required = true},
                                        {.name = "arg2", .description = "Second test argument", .required = true}};
constexpr mcp::PromptArgument kUri[] = {
    {.name = "resourceUri", .description = "URI of the resource", .required = true}};
constexpr mcp::Prompt kPrompts[] = {
    {.name = "test_simple_prompt", .description = "A simple prompt", .get = simple_prompt},
    {.name = "test_prompt_with_arguments",
     .description = "A prompt with arguments",
     .arguments = kTwo,
     .get = prompt_with_arguments,
     .complete = complete_arguments},
    {.name = "test_prompt_with_embedded_resource",
     .description = "A prompt with a resource",
     .arguments = kUri,
     .get = prompt_with_resource},
    {.name = "test_prompt_with_image", .description = "A prompt with a picture", .get = prompt_with_image},
    {.name = "test_input_required_result_prompt", .description = "A prompt that asks", .get = asking_prompt},
};

struct App {
  mcp::McpServer* server = nullptr;
};

void change_tools(Call& call) {
  call.context<App>().server->list_changed(mcp::ItemKind::tools);
  call.context<App>().server->resource_updated("test://watched-resource");
  call.text("The list of tools has changed.");
}
void change_prompts(Call& call) {
  call.context<App>().server->list_changed(mcp::ItemKind::prompts);
  call.text("The list of prompts has changed.");
}

}  // namespace

int main(int argc, char** argv) {
  App app;
  auto server = mcp::McpServer::create({.name = "mcp_peer",
                                        .title = "Peer",
                                        .version = "1.0.0",
                                        .instructions = "Tools of the conformance suite.",
                                        .tools = kTools,
                                        .resources = kResources,
                                        .templates = kTemplates,
                                        .prompts = kPrompts,
                                        .context = &app});
  if (!server) return 1;
  app.server = &*server;
  auto routes = http::routes(http::any<"/mcp">(*server));
  return coir::test::serve_printed(routes, {}, http::Mode::fibers,
                                   static_cast<std::uint16_t>(argc > 1 ? atoi(argv[1]) : 0));
}
