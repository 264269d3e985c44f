#include "allowed_hosts.h"

#include <coir/format.h>

#include <algorithm>
#include <string_view>

#include "complaint.h"
#include "option_table.h"

bool add_host(const char* text, Options& options) noexcept {
  const std::string_view host = text;
  if (options.host_count == Options::kMaxHosts)
    return complain(kSeeHelp, {"--allow-host '", text, "': more than ", Options::kMaxHosts, " names"});
  const bool v6 = std::ranges::count(host, ':') > 1 && (!host.starts_with('[') || host.ends_with(']'));
  if (host.empty() || host.find_first_of("/@, ") != host.npos || (!v6 && host.find(':') != host.npos))
    return complain("such as board.lan, 203.0.113.7, or * for any",
                    {"--allow-host '", text, "': not a name without scheme and port"});
  options.hosts[options.host_count++] = host;
  return true;
}

void allow_hosts(Options& options) noexcept {
  if (options.mdns != nullptr)
    options.hosts[options.host_count++] = coir::format(options.mdns_host, options.mdns, ".local");
  options.server.allow_hosts = {options.hosts, options.host_count};
}
