#include <CppUTest/TestHarness.h>

#include <memory>

#include "proxy/gateway_metrics.h"
#include "tests/unit/proxy/gateway.h"

namespace gateway_metrics_test {

using namespace coir;
using namespace coir::http;
using namespace coir::test;

namespace {

struct Shown final : GatewayPart {
  Shown(GatewayGroup given, const Forwarder& its_forwarder) : group(given), forwarder(its_forwarder) {}
  void each_group(const Callable<void(const GatewayGroup&)>& visit) noexcept override { visit(group); }
  const Forwarder* counted() const noexcept override { return &forwarder; }

  GatewayGroup group;
  const Forwarder& forwarder;
};

// all is what a client hears up to the end of the metrics.
struct Page {
  char text[65536];
  std::size_t size = 0;
  explicit Page(const Address& address) {
    Client client(address);
    // Content in chunks could have a line in two of them.
    static_cast<void>(client.say("GET / HTTP/1.0\r\n\r\n"));
    for (;;) {
      auto got = client.stream.read(std::span(text).subspan(size), soon());
      if (!got) break;
      size += *got;
    }
  }
  bool has(std::string_view line) const { return std::string_view(text, size).find(line) != std::string_view::npos; }
};

class MetricsServer : public HandlerServer {
 public:
  // shown has a page show the same servers twice, as those of two proxies: "http" and "again".
  template <class Visit>
  void shown(std::span<const UpstreamServer> servers, std::string_view name, std::string_view host, Visit visit) {
    ServerOptions options;
    options.handler = [](Exchange& exchange) { (*metrics_)(exchange); };
    serving(options, [&](Server& server, const Address& address, Seen&) {
      auto upstreams = *Upstreams::create(servers);
      auto forwarder = *Forwarder::create();
      forwarder.counters().forwarded.store(2);
      Shown first({.name = name, .host = host, .upstreams = &upstreams}, forwarder);
      Shown second({.protocol = "again", .name = name, .host = host, .upstreams = &upstreams}, forwarder);
      GatewayPart *one = &first, *other = &second, *none = nullptr;
      Metrics metrics;
      for (GatewayPart* each : {one, none, other}) metrics.add(each);
      metrics_ = &metrics;
      const auto page = std::make_unique<Page>(address);
      visit(*page);
      expect(server.stop(soon()).has_value());
    });
  }

 private:
  static inline const Metrics* metrics_ = nullptr;
};

}  // namespace

TEST_GROUP_BASE(GatewayMetrics, MetricsServer) {};

TEST(GatewayMetrics, each_server_has_its_samples_and_the_forwarder_its_own) {
  const UpstreamServer servers[] = {"http://board.example:81", "unix:/run/app.sock"};
  shown(servers, "/api", "", [&](const Page& page) {
    for (const std::string_view server : {"http://board.example:81", "unix:/run/app.sock"}) {
      char line[256];
      expect(page.has(
          coir::format(line, "\ncoir_upstream_up{protocol=\"http\",group=\"/api\",server=\"", server, "\"} 1\n")));
      expect(page.has(coir::format(line, "\ncoir_upstream_failures_total{protocol=\"http\",group=\"/api\",server=\"",
                                   server, "\",kind=\"timed_out\"} 0\n")));
      expect(page.has(coir::format(line,
                                   "\ncoir_upstream_latency_seconds_bucket{protocol=\"http\",group=\"/api\",server=\"",
                                   server, "\",le=\"0.0005\"} 0\n")));
      expect(page.has(coir::format(line,
                                   "\ncoir_upstream_latency_seconds_count{protocol=\"http\",group=\"/api\",server=\"",
                                   server, "\"} 0\n")));
    }
    expect(page.has("\ncoir_upstream_unavailable_total{protocol=\"http\",group=\"/api\"} 0\n"));
    expect(page.has("\ncoir_upstream_waiting{protocol=\"http\",group=\"/api\"} 0\n"));
    expect(page.has("\ncoir_proxy_failed_total{status=\"504\"} 0\n"));
    for (const std::string_view why : {"refused", "all-down", "connect-timeout", "timeout", "loop"}) {
      char line[96];
      expect(page.has(coir::format(line, "\ncoir_proxy_failures_total{why=\"", why, "\"} 0\n")));
    }
  });
}

TEST(GatewayMetrics, each_family_of_several_proxies_is_written_once_and_what_they_forwarded_is_summed) {
  const UpstreamServer servers[] = {"http://a"};
  shown(servers, "/api", "", [&](const Page& page) {
    expect(page.has("\ncoir_proxy_forwarded_total 4\n"));
    expect(
        page.has("# TYPE coir_upstream_up gauge\n"
                 "coir_upstream_up{protocol=\"http\",group=\"/api\",server=\"http://a:80\"} 1\n"
                 "coir_upstream_up{protocol=\"again\",group=\"/api\",server=\"http://a:80\"} 1\n"));
  });
}

TEST(GatewayMetrics, a_name_is_escaped_and_cut_and_a_server_that_comes_twice_differs) {
  const UpstreamServer servers[] = {"http://a", "http://a"};
  char name[2 * kMostLabel];
  memset(name, 'x', sizeof name);
  memcpy(name, "/\"\\\n", 4);
  shown(servers, {name, sizeof name}, "h\"", [&](const Page& page) {
    char line[512];
    const std::string_view kept(name + 4, kMostLabel - 4);
    for (const std::string_view server : {"http://a:80", "http://a:80#1"}) {
      expect(page.has(coir::format(line, "\ncoir_upstream_up{protocol=\"http\",group=\"/\\\"\\\\\\n", kept,
                                   "\",host=\"h\\\"\",server=\"", server, "\"} 1\n")));
    }
  });
}

}  // namespace gateway_metrics_test
