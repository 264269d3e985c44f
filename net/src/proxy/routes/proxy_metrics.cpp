// The metrics of a Proxy. Declared in coir/http/proxy.h and proxy/gateway_metrics.h.
#include <optional>

#include "proxy/gateway_metrics.h"
#include "proxy/routes/proxy_state.h"

namespace coir::http {

// The table and its groups stay meanwhile.
void write_gateway_metrics(MetricsText& text, const Proxy* proxy, const GatewayGroups& others) noexcept {
  ProxyState* const state = proxy != nullptr ? proxy->state() : nullptr;
  if (state == nullptr) return write_gateway_metrics(text, static_cast<const Forwarder*>(nullptr), others);
  struct Both {
    const ProxyHold hold;
    const GatewayGroups& others;
  } const both{state->hold(), others};
  const auto at = [](const void* opaque, std::size_t index) noexcept {
    const auto& all = *static_cast<const Both*>(opaque);
    if (index >= all.hold.size()) return all.others.at(all.others.context, index - all.hold.size());
    const RouteLine& line = all.hold.line(index);
    return GatewayGroup{.name = line.prefix, .host = line.hosts, .upstreams = &all.hold.upstreams(index)};
  };
  write_gateway_metrics(text, &state->forwarder(), {both.hold.size() + others.count, at, &both});
}

void write_gateway_metrics(MetricsText& text, const Proxy& proxy) noexcept {
  write_gateway_metrics(text, &proxy, GatewayGroups());
}

}  // namespace coir::http
