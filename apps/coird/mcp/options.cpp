#include "options.h"

#include "../complaint.h"
#include "../options/take.h"
#include "fetch_list.h"
#include "tools.h"

#if COIRD_MCP

namespace {

constexpr const char* kSeeMcpHelp = "coird --help explains --mcp";

template <std::size_t kMost>
bool add(const Setting& setting, McpOptions::List<kMost>& into) noexcept {
  const char* const text = setting.text;
  if (*text == '\0') return setting.wrong(kSeeMcpHelp, {"a value is missing"});
  if (into.has(text)) return setting.wrong(kSeeMcpHelp, {"this was given before"});
  if (into.count == kMost) return setting.wrong(kSeeMcpHelp, {"more than ", kMost});
  into.texts[into.count++] = text;
  return true;
}

// take_url takes the URL of an issuer, of its endpoint, or of this server as an issuer names it.
bool take_url(const Setting& setting, const char*& into) noexcept {
  if (!is_web_url(setting.text) || std::string_view(setting.text).find_first_of(" \"\\#") != std::string_view::npos)
    return setting.wrong("such as https://id.example", {"not a URL of http or https"});
  into = setting.text;
  return true;
}

}  // namespace

bool is_web_url(std::string_view text) noexcept {
  return text.starts_with("http://") || text.starts_with("https://");
}

bool take_mcp(const Setting& setting, Options& options) noexcept {
  if (*setting.text != '/' || std::string_view(setting.text).find_first_of("?#% ") != std::string_view::npos)
    return setting.wrong("such as /mcp", {"not a path"});
  options.mcp.path = setting.text;
  return true;
}

bool take_mcp_issuer(const Setting& setting, Options& options) noexcept {
  return take_url(setting, options.mcp.issuer);
}

bool take_mcp_audience(const Setting& setting, Options& options) noexcept {
  return take_url(setting, options.mcp.audience);
}

bool take_mcp_introspect(const Setting& setting, Options& options) noexcept {
  return take_url(setting, options.mcp.introspect);
}

bool take_mcp_scope(const Setting& setting, Options& options) noexcept {
  if (std::string_view(setting.text).find_first_of(" \"\\") != std::string_view::npos)
    return setting.wrong("give the option once for each", {"not one scope"});
  return add(setting, options.mcp.scopes);
}

bool take_mcp_origin(const Setting& setting, Options& options) noexcept {
  return add(setting, options.mcp.origins);
}

// take_mcp_tool names all tools where one is not known.
bool take_mcp_tool(const Setting& setting, Options& options) noexcept {
  for (const coir::mcp::Tool& tool : coird_tools()) {
    if (tool.marks.name == setting.text) return add(setting, options.mcp.tools);
  }
  char names[256];
  coir::Formatter all(names);
  for (const coir::mcp::Tool& tool : coird_tools()) all.add(all.text().empty() ? "" : ", ", tool.marks.name);
  return setting.wrong(kSeeMcpHelp, {"no such tool; there are ", all.text()});
}

bool take_mcp_fetch(const Setting& setting, Options& options) noexcept {
  if (!FetchList::is_entry(setting.text))
    return setting.wrong("such as api.example, *.example:8080, [fd00::1]:80, or * for the public Internet",
                         {"not a host"});
  return add(setting, options.mcp.fetch_hosts);
}

// take_mcp_mount takes "PREFIX=URL" or "PREFIX=COMMAND".
bool take_mcp_mount(const Setting& setting, Options& options) noexcept {
  McpOptions& mcp = options.mcp;
  const std::string_view all = setting.text;
  const std::size_t equals = all.find('=');
  if (equals == all.npos || equals == 0 || equals + 1 == all.size())
    return setting.wrong("such as home=http://192.168.1.9:8080/mcp", {"not PREFIX=URL or PREFIX=COMMAND"});
  for (const char c : all.substr(0, equals)) {
    const bool good =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    if (!good) return setting.wrong("it begins the names of tools", {"a prefix has letters, digits, _ and -"});
  }
  for (std::size_t i = 0; i < mcp.mounts.count; ++i) {
    if (mcp.mounts.texts[i].substr(0, equals + 1) == all.substr(0, equals + 1))
      return setting.wrong(kSeeMcpHelp, {"this prefix was given before"});
  }
  return add(setting, mcp.mounts);
}

bool check_mcp(const Options& options) noexcept {
  const McpOptions& mcp = options.mcp;
  if (mcp.tools.has("fetch") && mcp.fetch_hosts.count == 0)
    return options.wrong("mcp-tool", "fetch", "name the hosts that it may read by --mcp-fetch-allow",
                         {"without a host"});
  if (mcp.fetch_hosts.count != 0 && !mcp.tools.has("fetch"))
    return options.wrong("mcp-fetch-allow", mcp.fetch_hosts.texts[0].data(), "switch it on by --mcp-tool fetch",
                         {"without the tool"});
  if (mcp.issuer == nullptr) return true;
  if (mcp.token_file != nullptr)
    return options.wrong("mcp-issuer", mcp.issuer, kSeeMcpHelp, {"conflicts with mcp-token-file"});
  if (mcp.jwt_key != nullptr && mcp.introspect != nullptr)
    return options.wrong("mcp-jwt-key", mcp.jwt_key, kSeeMcpHelp, {"conflicts with mcp-introspect"});
#if !COIR_TLS
  return options.wrong("mcp-issuer", mcp.issuer, "build it with -DCOIR_TLS=ON",
                       {"this coird was built without COIR_TLS"});
#elif !COIR_CLIENT
  if (mcp.introspect != nullptr)
    return options.wrong("mcp-introspect", mcp.introspect, "build it with -DCOIR_CLIENT=ON",
                         {"this coird was built without COIR_CLIENT"});
#endif
  return true;
}

#else

bool check_mcp(const Options&) noexcept {
  return true;
}

#endif
