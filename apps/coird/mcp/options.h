#pragma once

#include <coir/config.h>

#include <cstddef>
#include <string_view>

struct Options;
struct Setting;

// Take has a setting count (options/row.h).
using Take = bool (*)(const Setting& setting, Options& options) noexcept;

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

// These take the options; a null function is one that the build lacks. check_mcp looks at what only all options tell.
// False: one line on standard error has said what is wrong.
#if COIRD_MCP
[[nodiscard]] bool take_mcp(const Setting& setting, Options& options) noexcept;
[[nodiscard]] bool take_mcp_token_file(const Setting& setting, Options& options) noexcept;
[[nodiscard]] bool take_mcp_origin(const Setting& setting, Options& options) noexcept;
[[nodiscard]] bool take_mcp_tool(const Setting& setting, Options& options) noexcept;
[[nodiscard]] bool take_mcp_fetch(const Setting& setting, Options& options) noexcept;
[[nodiscard]] bool take_mcp_mount(const Setting& setting, Options& options) noexcept;
[[nodiscard]] bool take_sysfs(const Setting& setting, Options& options) noexcept;
#else
inline constexpr Take take_mcp = nullptr, take_mcp_token_file = nullptr, take_mcp_origin = nullptr,
                      take_mcp_tool = nullptr, take_mcp_fetch = nullptr, take_mcp_mount = nullptr, take_sysfs = nullptr;
#endif
[[nodiscard]] bool check_mcp(const Options& options) noexcept;
