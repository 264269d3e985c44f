#pragma once

#include <coir/callable.h>
#include <coir/http/metrics.h>

#include <cstddef>
#include <string_view>

#include "proxy/forwarder.h"

namespace coir::http {

class Proxy;

// GatewayGroup is a group of upstreams as its samples are labelled: no two have all of protocol, name and host in common.
struct GatewayGroup {
  std::string_view protocol = "http";
  std::string_view name = {};  // such as the prefix of its route
  std::string_view host = {};  // and the hosts; empty: no such label
  const Upstreams* upstreams = nullptr;
};

// GatewayGroups are a program's groups, one after the other.
struct GatewayGroups {
  std::size_t count = 0;
  Callable<GatewayGroup(std::size_t index)> at;
};

// This is write_gateway_metrics of coir/http/proxy.h, for any groups. A name is cut at kMostLabel bytes. `forwarder` may be null.
void write_gateway_metrics(MetricsText& text, const Forwarder* forwarder, const GatewayGroups& groups) noexcept;

// begin_sample adds a sample of a family up to its last label's closing quote.
void begin_sample(MetricsText& text, std::string_view family, const GatewayGroup& group) noexcept;

// each_upstream is that of coir/http/proxy.h, for any groups.
void each_upstream(const GatewayGroups& groups, Callable<void(const UpstreamInfo& server)> visit) noexcept;

// The groups of `others` come behind those of the proxy, which may be null (proxy/routes/proxy_metrics.cpp).
void write_gateway_metrics(MetricsText& text, const Proxy* proxy, const GatewayGroups& others) noexcept;
void each_upstream(const Proxy* proxy, const GatewayGroups& others,
                   Callable<void(const UpstreamInfo& server)> visit) noexcept;

inline constexpr std::size_t kMostLabel = 128;

}  // namespace coir::http
