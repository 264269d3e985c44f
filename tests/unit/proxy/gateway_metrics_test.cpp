#include <CppUTest/TestHarness.h>

#include <memory>

#include "proxy/gateway_metrics.h"
#include "tests/unit/proxy/gateway.h"

namespace gateway_metrics_test {

using namespace coir;
using namespace coir::http;
using namespace coir::test;

namespace {

struct Shown {
  const Upstreams* upstreams;
  const Forwarder* forwarder;
  std::string_view name, host;
};
Shown* g_shown = nullptr;

GatewayGroup shown_group(std::size_t) noexcept {
  return {.name = g_shown->name, .host = g_shown->host, .upstreams = g_shown->upstreams};
}

void show(MetricsText& text) noexcept {
  write_gateway_metrics(text, g_shown->forwarder, {1, shown_group});
}

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

class Metrics : public HandlerServer {
 public:
  template <class Visit>
  void shown(std::span<const UpstreamServer> servers, std::string_view name, std::string_view host, Visit visit) {
    ServerOptions options;
    options.handler = [](Exchange& exchange) { write_metrics(exchange, *server_, nullptr, show); };
    serving(options, [&](Server& server, const Address& address, Seen&) {
      server_ = &server;
      auto upstreams = *Upstreams::create(servers);
      auto forwarder = *Forwarder::create();
      Shown shown{&upstreams, &forwarder, name, host};
      g_shown = &shown;
      const auto page = std::make_unique<Page>(address);
      visit(*page);
      expect(server.stop(soon()).has_value());
    });
  }

 private:
  static inline const Server* server_ = nullptr;
};

}  // namespace

TEST_GROUP_BASE(GatewayMetrics, Metrics) {};

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
