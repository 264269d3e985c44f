#include "needed_options.h"

#include "complaint.h"

namespace {

// Needs is an option that says nothing without one of the two others.
struct Needs {
  int option;
  int one;
  int other = 0;
  const char* why = "";
};

constexpr Needs kNeeds[] = {
    {kDotFiles, 'r'},
    {kIndex, 'r'},
    {kCache, 'r'},
    {kErrorPage, 'r'},
    {kAllowPut, 'r'},
    {kAllowPut, kAuth, 0, ": anybody could write"},
    {kProxyCa, kProxy, kRoutes},
    {kProxyCert, kProxy, kRoutes},
    {kProxyKey, kProxy, kRoutes},
    {kProxyCert, kProxyKey},
    {kProxyKey, kProxyCert},
    {kMqttPasswordFile, kMqtt},
    {kMqttCa, kMqtt},
    {kMqttCommands, kMqtt},
    {kMqttDiscovery, kMqtt},
    {kMqttInterval, kMqtt},
    {kMcpTokenFile, kMcp},
    {kMcpAllowOrigin, kMcp},
    {kMcpTool, kMcp},
    {kMcpFetchAllow, kMcp},
    {kMcpMount, kMcp},
    {kSysfs, kMcp},
    {kCert, kTlsListen},
    {kKey, kTlsListen},
    {kClientCa, kTlsListen},
    {kClientCa, kCert},
};

}  // namespace

bool check_needs(const bool (&given)[kLast]) noexcept {
  for (const Needs& each : kNeeds) {
    if (!given[each.option] || given[each.one] || (each.other != 0 && given[each.other])) continue;
    return complain(kSeeHelp, {"--", name_of(each.option), " without --", name_of(each.one),
                               each.other != 0 ? " or --" : "", each.other != 0 ? name_of(each.other) : "", each.why});
  }
  return true;
}
