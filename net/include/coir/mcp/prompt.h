#pragma once

#include <coir/mcp/call.h>
#include <coir/mcp/resource.h>

#include <span>
#include <string_view>

namespace coir::mcp {

struct PromptArgument {
  std::string_view name;
  std::string_view description = {};
  bool required = false;
};

// Prompt is a text that users choose, made of their arguments:
//
//   void explain(mcp::Call& call) { ... call.text(what call.argument("topic") asks for) }
//
// Each piece of content is a message, the user's unless call.role says otherwise.
struct Prompt {
  std::string_view name;
  std::string_view title = {};
  std::string_view description = {};
  std::span<const PromptArgument> arguments = {};
  std::span<const Icon> icons = {};
  void (*get)(Call& call) = nullptr;
  Complete* complete = nullptr;
};

}  // namespace coir::mcp
