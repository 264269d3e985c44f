// The metrics and the servers of a Proxy. Declared in coir/http/proxy.h and proxy/gateway_metrics.h.
#include <optional>

#include "proxy/gateway_metrics.h"
#include "proxy/routes/proxy_state.h"

namespace coir::http {
namespace {

// with_groups calls use(forwarder, groups) with the groups of the proxy and, behind them, `others`. The proxy's table and
// its groups stay meanwhile.
template <class Use>
void with_groups(const Proxy* proxy, const GatewayGroups& others, Use use) noexcept {
  ProxyState* const state = proxy != nullptr ? proxy->state() : nullptr;
  if (state == nullptr) return use(static_cast<const Forwarder*>(nullptr), others);
  const ProxyHold hold = state->hold();
  const auto at = [&](std::size_t index) {
    if (index >= hold.size()) return others.at(index - hold.size());
    const RouteLine& line = hold.line(index);
    return GatewayGroup{.name = line.prefix, .host = line.hosts, .upstreams = &hold.upstreams(index)};
  };
  use(&state->forwarder(), GatewayGroups{hold.size() + others.count, at});
}

}  // namespace

void write_gateway_metrics(MetricsText& text, const Proxy* proxy, const GatewayGroups& others) noexcept {
  with_groups(proxy, others, [&](const Forwarder* forwarder, const GatewayGroups& groups) {
    write_gateway_metrics(text, forwarder, groups);
  });
}

void write_gateway_metrics(MetricsText& text, const Proxy& proxy) noexcept {
  write_gateway_metrics(text, &proxy, GatewayGroups());
}

void each_upstream(const Proxy* proxy, const GatewayGroups& others,
                   Callable<void(const UpstreamInfo& server)> visit) noexcept {
  with_groups(proxy, others, [&](const Forwarder*, const GatewayGroups& groups) { each_upstream(groups, visit); });
}

void each_upstream(const Proxy& proxy, Callable<void(const UpstreamInfo& server)> visit) noexcept {
  each_upstream(&proxy, GatewayGroups(), visit);
}

}  // namespace coir::http
