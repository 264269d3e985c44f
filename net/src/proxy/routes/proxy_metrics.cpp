// The metrics of a Proxy. Declared in coir/http/proxy.h and proxy/gateway_metrics.h.
#include <optional>

#include "proxy/gateway_metrics.h"
#include "proxy/routes/proxy_state.h"

namespace coir::http {

// The table and its groups stay meanwhile.
void write_gateway_metrics(MetricsText& text, const Proxy* proxy, const GatewayGroups& others) noexcept {
  ProxyState* const state = proxy != nullptr ? proxy->state() : nullptr;
  if (state == nullptr) return write_gateway_metrics(text, static_cast<const Forwarder*>(nullptr), others);
  const ProxyHold hold = state->hold();
  const auto at = [&](std::size_t index) {
    if (index >= hold.size()) return others.at(index - hold.size());
    const RouteLine& line = hold.line(index);
    return GatewayGroup{.name = line.prefix, .host = line.hosts, .upstreams = &hold.upstreams(index)};
  };
  write_gateway_metrics(text, &state->forwarder(), GatewayGroups{hold.size() + others.count, at});
}

void write_gateway_metrics(MetricsText& text, const Proxy& proxy) noexcept {
  write_gateway_metrics(text, &proxy, GatewayGroups());
}

}  // namespace coir::http
