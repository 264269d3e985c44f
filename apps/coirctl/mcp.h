#pragma once

#include "mcp_options.h"

// ask_mcp asks a server of MCP, and returns the exit status.
int ask_mcp(const AskMcpOptions& options) noexcept;
