// Groups of servers that routes share. Declared in proxy/routes/proxy_state.h.
#include <string.h>

#include <algorithm>

#include "proxy/routes/proxy_state.h"
#include "proxy/routes/route_servers.h"

namespace coir::http {

bool ProxyGroup::serves(const RouteLine& line) const noexcept {
  return urls == line.urls && balance == line.balance && max_connections == line.max_connections &&
         std::ranges::equal(weights, line.weights) && slow_start == line.slow_start && health == line.health &&
         (health.empty() || (health_interval == line.health_interval && health_host == host_of(line)));
}

void ProxyGroup::take_texts(const RouteLine& line) noexcept {
  char* at = reinterpret_cast<char*>(this + 1);
  const auto take = [&at](std::string_view text) {
    const std::string_view copy(at, text.size());
    memcpy(at, text.data(), text.size());
    at += text.size();
    return copy;
  };
  urls = take(line.urls);
  if (!line.health.empty()) health = take(line.health);
  if (!host_of(line).empty()) health_host = take(host_of(line));
}

}  // namespace coir::http
