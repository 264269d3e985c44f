#pragma once

#include <coir/config.h>

#include <cstddef>
#include <string_view>

struct Options;

// --mcp offers tools to agents by the Model Context Protocol. A build without it (-DCOIR_MCP=OFF), or without
// fibers, refuses the options.
#define COIRD_MCP (COIR_MCP && !COIR_NO_ASYNC)

// McpOptions is what the options of --mcp say. Texts are the command line's.
struct McpOptions {
  template <std::size_t kMost>
  struct List {
    std::string_view texts[kMost] = {};
    std::size_t count = 0;

    bool has(std::string_view text) const noexcept {
      for (std::size_t i = 0; i < count; ++i) {
        if (texts[i] == text) return true;
      }
      return false;
    }
  };

  const char* path = nullptr;        // null: nothing is offered
  const char* token_file = nullptr;  // its first line is what requests have to bring
  List<16> origins;
  List<16> tools;        // by name; all others are off
  List<16> fetch_hosts;  // of the tool "fetch"
  List<8> mounts;        // PREFIX=URL or PREFIX=COMMAND
  const char* sysfs = "/sys";
  bool sysfs_given = false;
};

// apply_mcp takes an option of those (option_table.h), check_mcp looks at what only the whole command line tells.
// False: one line on standard error has said what is wrong.
[[nodiscard]] bool apply_mcp(int chosen, const char* text, Options& options) noexcept;
[[nodiscard]] bool check_mcp(const Options& options) noexcept;
