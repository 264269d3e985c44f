#pragma once

#include <coir/config.h>

#include <cstdint>
#include <string_view>

// The verb needs the client of coir/mcp/client.h.
#define COIRCTL_MCP (COIR_MCP && COIR_STREAMS && !COIR_NO_ASYNC)

// AskMcpOptions is the command line of `coirctl mcp`.
struct AskMcpOptions {
  enum class Action : std::uint8_t { info, tools, resources, templates, prompts, call, read, prompt };

  const char* url = nullptr;
  Action action = Action::info;
  const char* name = nullptr;       // of a tool or a prompt, or a resource's URI
  const char* arguments = nullptr;  // a JSON object
  const char* token_file = nullptr;
  const char* authorities = nullptr;  // a file of certificates
  bool progress = false;
  std::uint32_t timeout_s = 30;

  // read reads the words behind "mcp". False: one line on standard error has told what is wrong.
  bool read(int count, char** words) noexcept;
};

// mcp_help is the text of `coirctl mcp --help`.
extern const std::string_view mcp_help;
