#pragma once

#include "options.h"

#if COIRD_MCP
#include <coir/mcp.h>
#include <coir/mutex.h>

#include <span>

class BoardParts;
struct Daemon;
class Fetcher;
class McpAccess;

// Toolbox is what coird's tools work with.
struct Toolbox {
  const Daemon* daemon = nullptr;
  BoardParts* board = nullptr;
  coir::Mutex converter;  // one reading at a time: its channel is chosen by a write
  Fetcher* fetcher = nullptr;
  char host[65] = {};     // this machine's name
  char kernel[130] = {};  // "Linux 5.10.4"
  char machine[65] = {};
};

// coird_tools are all tools that coird has, in the order in which they are listed. Calls have a Toolbox as context.
std::span<const coir::mcp::Tool> coird_tools() noexcept;
#endif
