// The metrics and the servers of a Proxy. Declared in coir/http/proxy.h and proxy/routes/proxy_state.h.
#include "proxy/gateway_metrics.h"
#include "proxy/routes/proxy_state.h"

namespace coir::http {

void ProxyState::each_group(const Callable<void(const GatewayGroup& group)>& visit) noexcept {
  const ProxyHold held = hold();
  for (std::size_t i = 0; i < held.size(); ++i) {
    const RouteLine& line = held.line(i);
    visit({.name = line.prefix, .host = line.hosts, .upstreams = &held.upstreams(i)});
  }
}

MetricsPart metrics_part(const Proxy& proxy) noexcept {
  return metrics_part(static_cast<GatewayPart*>(proxy.state()));
}

void each_upstream(const Proxy& proxy, Callable<void(const UpstreamInfo& server)> visit) noexcept {
  each_upstream(static_cast<GatewayPart*>(proxy.state()), visit);
}

}  // namespace coir::http
