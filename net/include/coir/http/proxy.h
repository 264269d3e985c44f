#pragma once

#include <coir/callable.h>

// Proxy answers exchanges by what other servers answer. It is mounted like a handler:
//
//   auto app = routes(any<"/api/{path...}">(Proxy{{"http://10.0.0.2:8081", "http://10.0.0.3:8081"}}),
//                     any<"/shop/{path...}">(Proxy{"http://shop.example", {.health = "/up"}}));
//   return serve({.listen = ":8080"}, app);

#include <coir/detail/chrono.h>
#include <coir/http/detail/upstream_server.h>
#include <coir/http/exchange.h>

#if !COIR_PROXY
#error "this build of coir has no reverse proxy: configure it with -DCOIR_PROXY=ON"
#endif

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace coir {
class TlsContext;
}

namespace coir::http {

struct MetricsPart;
class ProxyState;
class ProxyTable;
struct ProxyChange;
struct ProxyFault;

// FieldChanges is what a route does to the fields of a head: fields that are dropped, and lines that are set.
struct FieldChanges {
  static constexpr std::size_t kMost = 4;
  static constexpr std::size_t kLineBytes = 128;

  std::string_view names[kMost] = {};  // dropped, those that are set among them
  std::size_t count = 0;
  std::size_t size = 0;
  char memory[kLineBytes] = {};  // "Name: value\r\n" of each field that is set

  std::span<const std::string_view> drops() const noexcept { return {names, count}; }
  std::string_view lines() const noexcept { return {memory, size}; }
};

// ProxyRules is what a route of a proxy does. Behind each member is its key in a file of routes.
struct ProxyRules {
  // The beginning of the paths that are passed on. If the servers' URLs have a path, that takes its place.
  std::string_view prefix = "/";
  std::string_view host = {};              // send-host=NAME: the Host that the upstream receives; empty: the client's
  Balance balance = Balance::round_robin;  // balance=turn, =least or =client: hash, by the client's address
  std::uint32_t max_connections =
      0;                         // max-connections=N: most exchanges, streams and tunnels of a server; 0: any number
  std::string_view health = {};  // health=PATH: what the servers are asked for, to know whether they are well
  std::chrono::milliseconds health_interval{5'000};  // health-interval=TIME: a number and ms, s or m
  std::chrono::milliseconds slow_start{0};           // slow-start=TIME: of a server that is back
  FieldChanges request = {};   // set-request=NAME:VALUE, drop-request=NAME, FieldChanges::kMost of both
  FieldChanges response = {};  // the same with -response

  // These are checked before an exchange is passed on, in this order.
  std::uint32_t rate = 0;               // rate=N[,BURST]: requests a second of one client, over it 429; 0: any number
  std::uint32_t burst = 0;              // of these at once; not given: `rate`
  std::string_view auth = {};           // auth=FILE: whose credentials are wanted, else 401; the program reads the file
  std::uint64_t max_body = UINT64_MAX;  // max-body=BYTES: content over it is answered 413
  std::chrono::milliseconds body_timeout{};  // body-timeout=TIME and body-rate=BYTES, a second: as for ServerOptions;
  std::optional<std::uint32_t> body_rate = {};  // 0, or absent: the server's own
  std::string_view trust = {};  // trust=A[,B...]: peers whose X-Forwarded-* are believed, as is_trusted reads it
  bool forwarded = false;       // forwarded: RFC 7239's Forwarded is sent, beside X-Forwarded-*
  bool request_id = false;      // request-id: each request has an X-Request-ID, which the server and the access log get
  std::uint32_t max_head = 0;   // head=BYTES: a response with a longer head is answered 502, 4K to 48K; 0: 12 KB
  std::chrono::milliseconds connect{};     // connect=TIME: to get a connection; 0: 5 s
  std::chrono::milliseconds first_byte{};  // first-byte=TIME: until the answer begins; 0: 60 s
  std::chrono::milliseconds idle{};        // idle=TIME: between two parts of it; 0: 60 s
  std::chrono::milliseconds rest_idle{};   // rest-idle=TIME: without a byte on a stream or tunnel; 0: any time
  std::uint32_t max_waiting =
      0;  // while so many exchanges wait for an answer to begin, one more is answered 503; 0: any number
};

// ProxyOptions is what all routes of a proxy share. It refers to what outlives the proxy.
struct ProxyOptions {
  const TlsContext* tls = nullptr;  // for https: a client's context
  // on_change is called when a server has gone down and when it has come back, by exchanges or by checks, in the order of
  // events; a server that is up at start is no news. It must not wait.
  Callable<void(const UpstreamNews& news)> on_change = {};
  // admits judges an exchange for a route with auth=, whose value it gets. If it returns false, it has answered. On a
  // fiber; it may wait.
  Callable<bool(Exchange& exchange, std::string_view auth)> admits = {};
};

// Proxy passes exchanges on to servers, of which each may answer, with a pool of connections for each.
//
// Content passes in both directions as it comes, through one buffer of the exchange, so that the slower side slows the
// other down. Every head is parsed and written anew; hop-by-hop fields stay behind. A request may be tried once more if it
// may be repeated and nothing was heard. A stream or tunnel that rests is two records: no fiber, no buffer. The name of a
// server is looked up again when its answer expires. A server that fails is skipped for a while.
//
// A proxy has one route, or a table of them (coir/http/proxy_table.h). It answers for one server at a time. When that stops,
// the proxy closes its connections; it may be destroyed once the server has stopped, before or after the server and the
// run. Move-only, until it is used.
class Proxy {
 public:
  // These make a proxy with one route. They ask no server. The rules' views outlive the proxy; the addresses are copied.
  template <std::size_t kCount>
  explicit Proxy(const UpstreamServer (&servers)[kCount], const ProxyRules& rules = {},
                 const ProxyOptions& options = {}) noexcept
      : Proxy(std::span<const UpstreamServer>(servers), rules, options) {
    static_assert(kCount <= UpstreamServer::kMost);
  }
  explicit Proxy(const UpstreamServer& server, const ProxyRules& rules = {}, const ProxyOptions& options = {}) noexcept
      : Proxy(std::span(&server, 1), rules, options) {}
  Proxy(std::span<const UpstreamServer> servers, const ProxyRules& rules, const ProxyOptions& options = {}) noexcept;

  // This makes a proxy without a route, for apply.
  explicit Proxy(const ProxyOptions& options = {}) noexcept;

  Proxy(Proxy&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  Proxy& operator=(Proxy&&) = delete;
  ~Proxy();

  // problem names the address or rule that is wrong, for a log; empty: none is. serve does not start with a problem, and
  // prints it; else exchanges are answered 503.
  std::string_view problem() const noexcept;

  // This answers an exchange: 404 if the route is for other paths, 400 if the path leaves it by dot segments, 413 and 429
  // by its limits, 502, 503 or 504 if no server answers, 508 if the request has been here before.
  // In a handler, on a fiber of 16 KB.
  void operator()(Exchange& exchange) noexcept;

  // serve is the same, but returns false, without an answer, if no route is for the exchange. If several fit, a route that
  // names the host comes before those for every host, then the longest prefix.
  bool serve(Exchange& exchange) noexcept;

  // apply has the routes of `table` count instead of those before, and leaves it empty. On an error nothing has changed.
  // Errors: invalid (an address, a weight or a path of health), unsupported (https without ProxyOptions::tls, auth= without
  // ProxyOptions::admits), no_memory, busy (another call is in progress). Before the run or on a fiber; it asks no server.
  [[nodiscard]] std::expected<ProxyChange, ProxyFault> apply(ProxyTable& table) noexcept;

  // watch begins to check servers that are not checked yet: by `health` in rounds, else by connecting to each once, and
  // again to those that could not be connected to. Call it after apply, on a fiber; a proxy with one route that has
  // `health` or on_change does so by itself. It costs a fiber with 16 KB of stack for each group of servers. Errors:
  // no_memory, limit, unsupported (those of spawn); the other servers are checked all the same.
  [[nodiscard]] std::expected<void, Error> watch() noexcept;

  // state is for this library.
  ProxyState* state() const noexcept { return state_; }

 private:
  ProxyState* state_;
};

// metrics_part is for Metrics::add of coir/http/metrics.h: what became of exchanges that were passed on, summed over all
// proxies, and of each server of each group: requests, failures by kind, whether it is up, connections in use and at rest.
MetricsPart metrics_part(const Proxy& proxy) noexcept;

// each_upstream shows the servers of a proxy, group by group. `visit` may wait.
void each_upstream(const Proxy& proxy, Callable<void(const UpstreamInfo& server)> visit) noexcept;

}  // namespace coir::http
