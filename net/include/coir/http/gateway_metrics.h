#pragma once

#include <coir/http/metrics.h>
#include <coir/http/proxy.h>
#include <coir/http/upstreams.h>

#include <cstddef>
#include <string_view>

namespace coir::http {

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
  GatewayGroup (*at)(void* context, std::size_t index) noexcept = nullptr;
  void* context = nullptr;
};

// write_gateway_metrics adds what became of exchanges that were forwarded, and of each server of each group: requests,
// failures by kind, latency, whether it is up, connections in use and at rest. A name is cut at kMostLabel bytes. `forwarder` may
// be null. The groups outlive the call, which waits for the client like any write. For MoreMetrics.
void write_gateway_metrics(MetricsText& text, const Forwarder* forwarder, const GatewayGroups& groups) noexcept;

inline constexpr std::size_t kMostLabel = 128;

}  // namespace coir::http
