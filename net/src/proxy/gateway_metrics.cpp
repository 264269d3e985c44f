#include "proxy/gateway_metrics.h"

#include <coir/format.h>

#include <algorithm>
#include <span>

#include "http/metrics_text.h"

namespace coir::http {
namespace {

using Kind = MetricsText::Kind;

// add_value adds a label's value as the text format wants it.
void add_value(MetricsText& text, std::string_view value) noexcept {
  value = value.substr(0, kMostLabel);
  while (!value.empty()) {
    const std::string_view plain = value.substr(0, value.find_first_of("\\\"\n"));
    if (!plain.empty()) text.add({plain});
    value.remove_prefix(plain.size());
    if (value.empty()) return;
    text.add({"\\", value.front() == '\n' ? "n" : value.substr(0, 1)});
    value.remove_prefix(1);
  }
}

// add_group adds the labels of a group, up to the last one's closing quote.
void add_group(MetricsText& text, const GatewayGroup& group) noexcept {
  text.add({"protocol=\"", group.protocol, "\",group=\""});
  add_value(text, group.name);
  if (group.host.empty()) return;
  text.add({"\",host=\""});
  add_value(text, group.host);
}

// begin_sample adds a sample of a family up to its last label's closing quote.
void begin_sample(MetricsText& text, std::string_view family, const GatewayGroup& group) noexcept {
  text.add({family, "{"});
  add_group(text, group);
}

// add_server adds the label of a server. One that a group names twice has two pools.
void add_server(MetricsText& text, const GatewayGroup& group, std::size_t server) noexcept {
  char name[kMostLabel], other[kMostLabel], number[8];
  const std::string_view own = group.upstreams->name(server, name);
  text.add({"\",server=\""});
  add_value(text, own);
  for (std::size_t i = 0; i < server; ++i) {
    if (group.upstreams->name(i, other) == own) return text.add({format(number, "#", server)});
  }
}

// add adds a sample of a server, with one more label, if there is one.
void add(MetricsText& text, std::string_view family, const GatewayGroup& group, std::size_t server,
         std::string_view label, std::string_view word, std::uint64_t value) noexcept {
  begin_sample(text, family, group);
  add_server(text, group, server);
  if (!label.empty()) text.add({"\",", label, "=\"", word});
  text.sample("\"}", {}, value);
}

void add_latency(MetricsText& text, const GatewayGroup& group, std::size_t server) noexcept {
  text.durations("coir_upstream_latency_seconds", group.upstreams->latency(server), [&](MetricsText& into) {
    add_group(into, group);
    add_server(into, group, server);
    into.add({"\""});
  });
}

// Parts are all proxies and applications that are written.
using Parts = std::span<void* const>;

template <class Visit>
void each_part(Parts parts, Visit visit) noexcept {
  for (void* const part : parts) {
    if (part != nullptr) visit(*static_cast<GatewayPart*>(part));
  }
}

template <class Visit>
void each_group(Parts parts, Visit visit) noexcept {
  each_part(parts, [&](GatewayPart& part) { part.each_group(visit); });
}

// write_forwarders adds what all proxies count together.
void write_forwarders(MetricsText& text, Parts parts) noexcept {
  bool any = false;
  const auto sum = [&](auto figure) {
    std::uint64_t all = 0;
    each_part(parts, [&](const GatewayPart& part) {
      if (const Forwarder* const forwarder = part.counted()) any = true, all += figure(*forwarder);
    });
    return all;
  };
  const auto read = [&](Atomic<std::uint64_t> ForwardCounters::* counter) {
    return sum([&](const Forwarder& each) { return (each.counters().*counter).load(std::memory_order_relaxed); });
  };
  const std::uint64_t forwarded = read(&ForwardCounters::forwarded);
  if (!any) return;
  text.one(Kind::counter, "coir_proxy_forwarded_total", "Responses whose head came from an upstream.", forwarded);
  text.about(Kind::counter, "coir_proxy_failed_total",
             "Requests that no upstream answered, by what the client was told.");
  text.sample("coir_proxy_failed_total", "{status=\"502\"}", read(&ForwardCounters::bad_gateway));
  text.sample("coir_proxy_failed_total", "{status=\"503\"}", read(&ForwardCounters::unavailable));
  text.sample("coir_proxy_failed_total", "{status=\"504\"}", read(&ForwardCounters::timed_out));
  text.sample("coir_proxy_failed_total", "{status=\"508\"}", read(&ForwardCounters::loops));
  text.about(Kind::counter, "coir_proxy_failures_total",
             "Requests that no upstream answered, or not to the end, by the access log's word.");
  for (std::size_t i = 0; i < kForwardFailures; ++i) {
    char label[32];
    text.sample(
        "coir_proxy_failures_total", format(label, "{why=\"", word_of(static_cast<ForwardFailure>(i)), "\"}"),
        sum([&](const Forwarder& each) { return each.counters().failures[i].load(std::memory_order_relaxed); }));
  }
  text.one(Kind::counter, "coir_proxy_limited_total", "Requests answered 429, by the rate of a route.",
           read(&ForwardCounters::limited));
  text.one(Kind::counter, "coir_proxy_silent_total", "Streams and tunnels cut because nothing moved.",
           read(&ForwardCounters::silent));
  text.one(Kind::counter, "coir_proxy_retried_total", "Requests tried again on another connection.",
           read(&ForwardCounters::retried));
  text.one(Kind::counter, "coir_proxy_cut_total", "Responses that an upstream did not end.",
           read(&ForwardCounters::cut));
  text.one(Kind::counter, "coir_proxy_cancelled_total", "Upstreams left because their client had gone.",
           read(&ForwardCounters::cancelled));
  text.one(Kind::gauge, "coir_proxy_waiting", "Requests that wait for a server's answer without a fiber.",
           sum([](const Forwarder& each) { return each.waiting(); }));
  text.one(Kind::gauge, "coir_proxy_streams", "Responses and tunnels that go on without a fiber.",
           sum([](const Forwarder& each) { return each.streams(); }));
}

// write_figures adds the parts' own counters, each family once.
void write_figures(MetricsText& text, Parts parts) noexcept {
  std::size_t count = 0;
  each_part(parts, [&](const GatewayPart& part) { count = std::max(count, part.figures()); });
  std::string_view last;
  for (std::size_t i = 0; i < count; ++i) {
    each_part(parts, [&](GatewayPart& part) {
      if (part.figures() == 0) return;
      const GatewayFigure figure = part.figure(i);
      if (figure.family != last) text.about(Kind::counter, last = figure.family, figure.help);
      part.each_group([&](const GatewayGroup& group) {
        begin_sample(text, figure.family, group);
        if (!figure.status.empty()) text.add({"\",status=\"", figure.status});
        text.sample("\"}", {}, figure.value);
      });
    });
  }
}

struct Column {
  std::string_view kind;
  std::uint64_t UpstreamServerState::* counter;
};

// each_server visits the servers, group by group.
template <class Visit>
void each_server(Parts parts, Visit visit) noexcept {
  each_group(parts, [&](const GatewayGroup& group) {
    for (std::size_t i = 0; i < group.upstreams->size(); ++i) visit(group, i, group.upstreams->server(i));
  });
}

// write_servers adds a family with a sample of each server for each column.
void write_servers(MetricsText& text, Parts parts, std::string_view name, std::string_view help,
                   std::span<const Column> columns) noexcept {
  text.about(Kind::counter, name, help);
  each_server(parts, [&](const GatewayGroup& group, std::size_t i, const UpstreamServerState& state) {
    for (const Column& column : columns)
      add(text, name, group, i, column.kind.empty() ? "" : "kind", column.kind, state.*column.counter);
  });
}

void write_gateways(MetricsText& text, Parts parts) noexcept {
  write_forwarders(text, parts);
  bool any = false;
  each_group(parts, [&](const GatewayGroup&) { any = true; });
  if (!any) return;
  using ServerState = UpstreamServerState;
  static constexpr Column kRequests[] = {{"", &ServerState::requests}};
  static constexpr Column kFailures[] = {{"unreachable", &ServerState::unreachable},
                                         {"cut", &ServerState::cut},
                                         {"malformed", &ServerState::malformed},
                                         {"head_too_long", &ServerState::oversized},
                                         {"timed_out", &ServerState::timed_out}};
  static constexpr Column kChecks[] = {{"", &ServerState::failed_checks}};
  static constexpr Column kDowns[] = {{"", &ServerState::downs}};
  write_servers(text, parts, "coir_upstream_requests_total", "Times that a server was chosen for a request.",
                kRequests);
  write_servers(text, parts, "coir_upstream_failures_total", "Requests that failed, by cause.", kFailures);
  write_servers(text, parts, "coir_upstream_failed_checks_total", "Checks of a server that failed.", kChecks);
  write_servers(text, parts, "coir_upstream_downs_total", "Times that a server went down.", kDowns);
  text.about(Kind::histogram, "coir_upstream_latency_seconds",
             "Time from a request that was sent to the head of its response.");
  each_server(parts, [&](const GatewayGroup& group, std::size_t i, const UpstreamServerState&) {
    add_latency(text, group, i);
  });
  text.about(Kind::gauge, "coir_upstream_up", "Whether a server is held to be up.");
  each_server(parts, [&](const GatewayGroup& group, std::size_t i, const UpstreamServerState& state) {
    add(text, "coir_upstream_up", group, i, "", "", state.up ? 1 : 0);
  });
  text.about(Kind::gauge, "coir_upstream_connections", "Connections to a server.");
  each_server(parts, [&](const GatewayGroup& group, std::size_t i, const UpstreamServerState& state) {
    add(text, "coir_upstream_connections", group, i, "state", "in_use", state.in_use);
    add(text, "coir_upstream_connections", group, i, "state", "resting", state.resting);
  });
  const auto write_group = [&](Kind kind, std::string_view name, std::string_view help, auto value_of) {
    text.about(kind, name, help);
    each_group(parts, [&](const GatewayGroup& group) {
      begin_sample(text, name, group);
      text.sample("\"}", {}, value_of(group.upstreams->state()));
    });
  };
  write_group(Kind::counter, "coir_upstream_unavailable_total", "Requests for which no server might be asked.",
              [](const UpstreamState& state) { return state.unavailable; });
  write_group(Kind::gauge, "coir_upstream_waiting", "Requests that wait for a server to have room.",
              [](const UpstreamState& state) { return state.waiting; });
  write_figures(text, parts);
}

}  // namespace

MetricsPart metrics_part(GatewayPart* part) noexcept {
  return {part, write_gateways};
}

void each_upstream(GatewayPart* part, const Callable<void(const UpstreamInfo& server)>& visit) noexcept {
  char name[kMostLabel];
  void* const parts[] = {part};
  each_server(parts, [&](const GatewayGroup& group, std::size_t i, const UpstreamServerState& state) {
    visit({.protocol = group.protocol,
           .group = group.name,
           .host = group.host,
           .server = group.upstreams->name(i, name),
           .up = state.up,
           .in_use = state.in_use,
           .resting = state.resting,
           .requests = state.requests,
           .failures = state.unreachable + state.cut + state.malformed + state.oversized + state.timed_out,
           .failed_checks = state.failed_checks,
           .downs = state.downs});
  });
}

}  // namespace coir::http
