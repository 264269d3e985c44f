#pragma once

#include <coir/callable.h>
#include <coir/http/metrics.h>

#include <cstddef>
#include <string_view>

#include "proxy/forwarder.h"

namespace coir::http {

// GatewayGroup is a group of upstreams as its samples are labelled: no two have all of protocol, name and host in common.
struct GatewayGroup {
  std::string_view protocol = "http";
  std::string_view name = {};  // such as the prefix of its route
  std::string_view host = {};  // and the hosts; empty: no such label
  const Upstreams* upstreams = nullptr;
};

// GatewayFigure is a counter of a part's own: a sample of a family, with the status that it counts, if it counts one of several.
struct GatewayFigure {
  std::string_view family;
  std::string_view help;
  std::string_view status;
  std::uint64_t value = 0;
};

// GatewayPart is a proxy or an application of FastCGI, as metrics see it.
class GatewayPart {
 public:
  // each_group visits the groups, which stay meanwhile; `visit` may wait.
  virtual void each_group(const Callable<void(const GatewayGroup& group)>&) noexcept {}
  // counted forwards its exchanges; null: it has none.
  virtual const Forwarder* counted() const noexcept { return nullptr; }
  // figure is the counter of a number below figures(). Parts that have some have the same, those of a family one behind the other.
  virtual std::size_t figures() const noexcept { return 0; }
  virtual GatewayFigure figure(std::size_t) const noexcept { return {}; }

 protected:
  ~GatewayPart() = default;
};

// metrics_part is that of coir/http/proxy.h for any part; null: there was no memory for it. A name is cut at kMostLabel bytes.
MetricsPart metrics_part(GatewayPart* part) noexcept;

// each_upstream is that of coir/http/proxy.h for any part.
void each_upstream(GatewayPart* part, const Callable<void(const UpstreamInfo& server)>& visit) noexcept;

inline constexpr std::size_t kMostLabel = 128;

}  // namespace coir::http
