#include "options.h"

#include "../complaint.h"
#include "../option_table.h"
#include "../options.h"
#include "fetch_list.h"
#include "tools.h"

#if COIRD_MCP

namespace {

constexpr const char* kSeeMcpHelp = "coird --help tells of --mcp";

template <std::size_t kMost>
bool add(int chosen, const char* text, McpOptions::List<kMost>& into) noexcept {
  if (*text == '\0') return complain(kSeeMcpHelp, {"--", name_of(chosen), " '': a value is missing"});
  if (into.has(text)) return complain(kSeeMcpHelp, {"--", name_of(chosen), " '", text, "': this was given before"});
  if (into.count == kMost) return complain(kSeeMcpHelp, {"--", name_of(chosen), " '", text, "': more than ", kMost});
  into.texts[into.count++] = text;
  return true;
}

// add_tool names all tools where one is not known.
bool add_tool(const char* text, McpOptions& mcp) noexcept {
  for (const coir::mcp::Tool& tool : coird_tools()) {
    if (tool.marks.name == text) return add(kMcpTool, text, mcp.tools);
  }
  char names[256];
  coir::Formatter all(names);
  for (const coir::mcp::Tool& tool : coird_tools()) all.add(all.text().empty() ? "" : ", ", tool.marks.name);
  return complain(kSeeMcpHelp, {"--mcp-tool '", text, "': no such tool; there are ", all.text()});
}

// add_mount takes "PREFIX=URL" or "PREFIX=COMMAND".
bool add_mount(const char* text, McpOptions& mcp) noexcept {
  const std::string_view all = text;
  const std::size_t equals = all.find('=');
  if (equals == all.npos || equals == 0 || equals + 1 == all.size())
    return complain("such as home=http://192.168.1.9:8080/mcp",
                    {"--mcp-mount '", text, "': not PREFIX=URL or PREFIX=COMMAND"});
  for (const char c : all.substr(0, equals)) {
    const bool good =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    if (!good)
      return complain("it begins the names of tools",
                      {"--mcp-mount '", text, "': a prefix has letters, digits, _ and -"});
  }
  for (std::size_t i = 0; i < mcp.mounts.count; ++i) {
    if (mcp.mounts.texts[i].substr(0, equals + 1) == all.substr(0, equals + 1))
      return complain(kSeeMcpHelp, {"--mcp-mount '", text, "': this prefix was given before"});
  }
  return add(kMcpMount, text, mcp.mounts);
}

}  // namespace

bool apply_mcp(int chosen, const char* text, Options& options) noexcept {
  McpOptions& mcp = options.mcp;
  switch (chosen) {
    case kMcp:
      if (*text != '/' || std::string_view(text).find_first_of("?#% ") != std::string_view::npos)
        return complain("such as /mcp", {"--mcp '", text, "': not a path"});
      mcp.path = text;
      return true;
    case kMcpTokenFile:
      mcp.token_file = text;
      return true;
    case kMcpAllowOrigin:
      return add(chosen, text, mcp.origins);
    case kMcpTool:
      return add_tool(text, mcp);
    case kMcpFetchAllow:
      if (!FetchList::is_entry(text))
        return complain("such as api.example, *.example:8080, [fd00::1]:80, or * for the public Internet",
                        {"--mcp-fetch-allow '", text, "': not a host"});
      return add(chosen, text, mcp.fetch_hosts);
    case kMcpMount:
      return add_mount(text, mcp);
    default:
      mcp.sysfs = text;
      mcp.sysfs_given = true;
      return true;
  }
}

bool check_mcp(const Options& options) noexcept {
  const McpOptions& mcp = options.mcp;
  if (mcp.tools.has("fetch") && mcp.fetch_hosts.count == 0)
    return complain("name the hosts that it may ask by --mcp-fetch-allow", {"--mcp-tool fetch alone asks nobody"});
  if (mcp.fetch_hosts.count != 0 && !mcp.tools.has("fetch"))
    return complain("switch it on by --mcp-tool fetch", {"--mcp-fetch-allow without the tool"});
  return true;
}

#else

bool apply_mcp(int chosen, const char*, Options&) noexcept {
  return lacks(name_of(chosen), "COIR_MCP", "build it with -DCOIR_MCP=ON");
}

bool check_mcp(const Options&) noexcept {
  return true;
}

#endif
