#include "hosts.h"

#include <coir/format.h>

#include <algorithm>
#include <string_view>

bool take_host(const Setting& setting, Options& options) noexcept {
  const std::string_view host = setting.text;
  if (options.host_count == Options::kMaxHosts) return setting.wrong({"more than ", Options::kMaxHosts, " names"});
  const bool v6 = std::ranges::count(host, ':') > 1 && (!host.starts_with('[') || host.ends_with(']'));
  if (host.empty() || host.find_first_of("/@, ") != host.npos || (!v6 && host.find(':') != host.npos))
    return setting.wrong("such as board.lan, 203.0.113.7, or * for any", {"has a scheme or a port, or is not a name"});
  options.hosts[options.host_count++] = host;
  return true;
}

void allow_hosts(Options& options) noexcept {
  if (options.mdns != nullptr)
    options.hosts[options.host_count++] = coir::format(options.mdns_host, options.mdns, ".local");
  options.server.allow_hosts = {options.hosts, options.host_count};
}
