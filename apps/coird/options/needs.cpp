#include "needs.h"

#include <string_view>

#include "row.h"

namespace {

// Needs is an option that says nothing without one of the two others.
struct Needs {
  const char* option;
  const char* one;
  const char* other = nullptr;
  const char* why = "";
};

constexpr Needs kNeeds[] = {
    {"dot-files", "root"},
    {"index", "root"},
    {"cache", "root"},
    {"error-page", "root"},
    {"allow-put", "root"},
    {"allow-put", "auth", nullptr, ": anyone could write"},
    {"proxy-ca", "proxy", "routes"},
    {"proxy-cert", "proxy", "routes"},
    {"proxy-key", "proxy", "routes"},
    {"proxy-cert", "proxy-key"},
    {"proxy-key", "proxy-cert"},
    {"mqtt-password-file", "mqtt"},
    {"mqtt-ca", "mqtt"},
    {"mqtt-commands", "mqtt"},
    {"mqtt-discovery", "mqtt"},
    {"mqtt-interval", "mqtt"},
    {"mcp-token-file", "mcp"},
    {"mcp-issuer", "mcp-jwt-key", "mcp-introspect", ": its tokens could not be checked"},
    {"mcp-issuer", "mcp-audience", nullptr, ": a token names its audience"},
    {"mcp-issuer", "mcp"},
    {"mcp-audience", "mcp-issuer"},
    {"mcp-jwt-key", "mcp-issuer"},
    {"mcp-introspect", "mcp-issuer"},
    {"mcp-client-file", "mcp-introspect"},
    {"mcp-scope", "mcp-issuer"},
    {"mcp-rate", "mcp"},
    {"mcp-allow-origin", "mcp"},
    {"mcp-tool", "mcp"},
    {"mcp-fetch-allow", "mcp"},
    {"mcp-mount", "mcp"},
    {"dashboard", "dashboard-token-file", nullptr, ": anyone could read the log"},
    {"dashboard-token-file", "dashboard"},
    {"pin", "control"},
    {"cert", "tls-listen"},
    {"key", "tls-listen"},
    {"client-ca", "tls-listen"},
    {"client-ca", "cert"},
    {"watchdog-timeout", "watchdog"},
    {"control-readers", "control"},
    {"log-size", "log-file"},
    {"log-count", "log-file"},
};

// find is the last setting of an option; null: it was not given. A section [route PREFIX] counts as --proxy.
const Setting* last_given(const Settings& settings, std::string_view name) noexcept {
  if (const Setting* const found = settings.last_of(*find_row(name))) return found;
  return name == "proxy" ? settings.last_of(route_key_row()) : nullptr;
}

}  // namespace

bool check_needs(const Settings& settings) noexcept {
  bool good = true;
  const Setting* told = nullptr;  // one line for each option
  for (const Needs& each : kNeeds) {
    const Setting* const setting = last_given(settings, each.option);
    if (setting == nullptr || setting == told || last_given(settings, each.one) != nullptr) continue;
    if (each.other != nullptr && last_given(settings, each.other) != nullptr) continue;
    const char* const dashes = setting->file == nullptr ? "--" : "";
    char text[128];
    coir::Formatter lacking(text);
    lacking.add("without ", dashes, each.one);
    if (each.other != nullptr) lacking.add(" or ", dashes, each.other);
    lacking.add(each.why);
    if (setting->file == nullptr) return complain(kSeeHelp, {"--", each.option, " ", lacking.text()});
    good = setting->wrong({lacking.text()});
    told = setting;
  }
  return good;
}
