#pragma once

#include <coir/config.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "../options/setting.h"

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
  // Access tokens: issuer and audience, and how they are checked, by a key or by introspection.
  const char* issuer = nullptr;
  const char* audience = nullptr;
  const char* jwt_key = nullptr;
  const char* introspect = nullptr;
  const char* client_file = nullptr;  // ID:SECRET, coird's credentials for the introspection
  List<8> scopes;
  std::uint32_t rate = 0;  // requests a second of each principal; 0: no limit
  List<16> origins;
  List<16> tools;        // by name; all others are off
  List<16> fetch_hosts;  // of the tool "fetch"
  List<8> mounts;        // PREFIX=URL or PREFIX=COMMAND
};

// is_web_url tells whether a text is meant as a URL of http or https, rather than a command.
bool is_web_url(std::string_view text) noexcept;

// These take the options; a null function is one that the build lacks. check_mcp looks at what only all options tell.
// False: one line on standard error has said what is wrong.
#if COIRD_MCP
[[nodiscard]] bool take_mcp(const Setting& setting, Options& options) noexcept;
[[nodiscard]] bool take_mcp_issuer(const Setting& setting, Options& options) noexcept;
[[nodiscard]] bool take_mcp_audience(const Setting& setting, Options& options) noexcept;
[[nodiscard]] bool take_mcp_introspect(const Setting& setting, Options& options) noexcept;
[[nodiscard]] bool take_mcp_scope(const Setting& setting, Options& options) noexcept;
[[nodiscard]] bool take_mcp_origin(const Setting& setting, Options& options) noexcept;
[[nodiscard]] bool take_mcp_tool(const Setting& setting, Options& options) noexcept;
[[nodiscard]] bool take_mcp_fetch(const Setting& setting, Options& options) noexcept;
[[nodiscard]] bool take_mcp_mount(const Setting& setting, Options& options) noexcept;
#else
inline constexpr Take take_mcp = nullptr, take_mcp_issuer = nullptr, take_mcp_audience = nullptr,
                      take_mcp_introspect = nullptr, take_mcp_scope = nullptr, take_mcp_origin = nullptr,
                      take_mcp_tool = nullptr, take_mcp_fetch = nullptr, take_mcp_mount = nullptr;
#endif
[[nodiscard]] bool check_mcp(const Options& options) noexcept;
