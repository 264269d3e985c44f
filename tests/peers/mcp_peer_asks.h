#pragma once

// Tools of mcp_peer that ask the client, in either era.

#include <coir/format.h>
#include <coir/mcp/detail/tool.h>

#include <string_view>

namespace {

using coir::mcp::Call;
namespace mcp = coir::mcp;

constexpr std::string_view kNameSchema =
    R"({"type":"object","properties":{"name":{"type":"string"}},"required":["name"]})";
constexpr std::string_view kConfirmSchema =
    R"({"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]})";
constexpr std::string_view kColorSchema =
    R"({"type":"object","properties":{"color":{"type":"string"}},"required":["color"]})";

struct PromptArguments {
  std::string_view prompt;
};
constexpr auto kPrompt = mcp::fields(mcp::field<&PromptArguments::prompt>("prompt", "The prompt to send to the LLM"));
struct MessageArguments {
  std::string_view message;
};
constexpr auto kMessage =
    mcp::fields(mcp::field<&MessageArguments::message>("message", "The message to show the user"));

void tell(Call& call, std::string_view begin, std::string_view text) {
  char line[400];
  call.text(coir::format(line, begin, text));
}

void sampling(Call& call, const PromptArguments& arguments) {
  const auto answer = call.sample("reply", arguments.prompt, 100);
  if (answer) tell(call, "LLM response: ", (*answer)["content"]["text"].text().value_or(""));
}

void tell_action(Call& call, const coir::JsonView& answer) {
  tell(call, "Elicitation completed: action=", answer["action"].text().value_or(""));
}

void elicitation(Call& call, const MessageArguments& arguments) {
  const auto answer = call.elicit(
      "user", arguments.message,
      R"({"type":"object","properties":{"username":{"type":"string","description":"User's response"},)"
      R"("email":{"type":"string","description":"User's email address"}},"required":["username","email"]})");
  if (answer) tell(call, "User response: ", (*answer)["action"].text().value_or(""));
}

void elicitation_defaults(Call& call) {
  const auto answer =
      call.elicit("all", "Please review and update the form fields with defaults",
                  R"({"type":"object","properties":{"name":{"type":"string","default":"John Doe"},)"
                  R"("age":{"type":"integer","default":30},"score":{"type":"number","default":95.5},)"
                  R"("status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},)"
                  R"("verified":{"type":"boolean","default":true}},"required":[]})");
  if (answer) tell_action(call, *answer);
}

void elicitation_enums(Call& call) {
  const auto answer = call.elicit(
      "all", "Please select options from the enum fields",
      R"({"type":"object","properties":{"untitledSingle":{"type":"string","enum":["option1","option2","option3"]},)"
      R"("titledSingle":{"type":"string","oneOf":[{"const":"value1","title":"First Option"},)"
      R"({"const":"value2","title":"Second Option"},{"const":"value3","title":"Third Option"}]},)"
      R"("legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["Option One","Option Two","Option Three"]},)"
      R"("untitledMulti":{"type":"array","items":{"type":"string","enum":["option1","option2","option3"]}},)"
      R"("titledMulti":{"type":"array","items":{"anyOf":[{"const":"value1","title":"First Choice"},)"
      R"({"const":"value2","title":"Second Choice"},{"const":"value3","title":"Third Choice"}]}}},"required":[]})");
  if (answer) tell_action(call, *answer);
}

void missing_capability(Call& call) {
  if (call.require(mcp::Capability::sampling)) call.text("The client has it.");
}

void streaming_elicitation(Call& call) {
  call.progress(1, 2);
  const auto answer = call.elicit("user_name", "What is your name?", kNameSchema);
  if (answer) tell_action(call, *answer);
}

void asks_name(Call& call) {
  const auto answer = call.elicit("user_name", "What is your name?", kNameSchema);
  if (answer) tell(call, "Hello, ", (*answer)["content"]["name"].text().value_or("nobody"));
}

void asks_model(Call& call) {
  const auto answer = call.sample("capital_question", "What is the capital of France?", 100);
  if (answer) tell(call, "", (*answer)["content"]["text"].text().value_or(""));
}

void asks_roots(Call& call) {
  const auto answer = call.roots("client_roots");
  if (answer) tell(call, "First root: ", (*answer)["roots"][0]["uri"].text().value_or("none"));
}

void asks_with_state(Call& call) {
  call.keep_state("confirming");
  const auto answer = call.elicit("confirm", "Please confirm", kConfirmSchema);
  if (answer) call.text(call.state() == "confirming" ? "state-ok" : "the state is missing");
}

void asks_thrice(Call& call) {
  call.keep_state("three");
  const auto name = call.elicit("user_name", "What is your name?", kNameSchema);
  const auto greeting = call.sample("greeting", "Generate a greeting", 50);
  const auto roots = call.roots("client_roots");
  if (name && greeting && roots) tell(call, "Hello, ", (*name)["content"]["name"].text().value_or("nobody"));
}

void asks_in_rounds(Call& call) {
  if (call.state() == "named") {
    const auto color = call.elicit("step2", "Step 2: What is your favorite color?", kColorSchema);
    call.keep_state("named");
    if (color) tell(call, "The color is ", (*color)["content"]["color"].text().value_or("none"));
    return;
  }
  call.keep_state("begun");
  const auto name = call.elicit("step1", "Step 1: What is your name?", kNameSchema);
  if (!name) return;
  call.keep_state("named");
  static_cast<void>(call.elicit("step2", "Step 2: What is your favorite color?", kColorSchema));
}

void asks_what_it_may(Call& call) {
  if (call.client_can(mcp::Capability::elicitation)) {
    static_cast<void>(call.elicit("user_name", "What is your name?", kNameSchema));
  }
  if (call.client_can(mcp::Capability::sampling)) static_cast<void>(call.sample("greeting", "Generate a greeting", 50));
}

void asking_prompt(Call& call) {
  const auto answer =
      call.elicit("user_context", "What context should the prompt use?",
                  R"({"type":"object","properties":{"context":{"type":"string"}},"required":["context"]})");
  if (answer) tell(call, "Use this context: ", (*answer)["content"]["context"].text().value_or("none"));
}

}  // namespace
