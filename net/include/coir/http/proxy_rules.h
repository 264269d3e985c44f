#pragma once

#include <coir/port/needs_fibers.h>

#include <coir/detail/chrono.h>
#include <coir/net/address.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string_view>

namespace coir::http {

// UpstreamServer is one of the servers that answer for a proxy or a FastCGI application: "http://host:port",
// "https://host" or "unix:/run/app.sock"; for FastCGI "host:port" or a Unix socket.
struct UpstreamServer {
  static constexpr std::size_t kMost = 16;  // in one group

  constexpr UpstreamServer() noexcept = default;
  constexpr UpstreamServer(const char* address) noexcept : url(address) {}
  constexpr UpstreamServer(std::string_view address, unsigned share = 1) noexcept : url(address), weight(share) {}

  std::string_view url = {};
  unsigned weight = 1;  // its share, 1 to 100
};

// Balance is how one of several servers is chosen.
enum class Balance : std::uint8_t {
  round_robin,        // in turn, by weight (smoothly, as nginx does)
  least_connections,  // the one with the fewest exchanges in progress, for its weight
  hash,               // by the client's address: the same client gets the same server while that is up (rendezvous)
};

// UpstreamNews says that a server has gone down or has come back. Its views end with the call that reports it.
struct UpstreamNews {
  std::string_view server;  // its address, "http://host:port"
  bool up = false;
  std::string_view why;  // a phrase for logs; empty if it is up
};

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
  std::string_view host = {};  // send-host=NAME: what the upstream is told as Host; empty: what the client said
  Balance balance = Balance::round_robin;  // balance=turn, =least or =client: hash, by the client's address
  std::uint32_t max_connections =
      0;                         // max-connections=N: most exchanges, streams and tunnels of a server; 0: any number
  std::string_view health = {};  // health=PATH: what the servers are asked for, to know whether they are well
  std::chrono::milliseconds health_interval{5'000};  // health-interval=TIME: a number and ms, s or m
  std::chrono::milliseconds slow_start{0};           // slow-start=TIME: of a server that is back
  FieldChanges request;   // set-request=NAME:VALUE, drop-request=NAME, FieldChanges::kMost of both
  FieldChanges response;  // the same with -response

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

// RouteLine is one line of a file of routes (route_line.cpp reads it):
//
//   PREFIX URL[,URL...] [KEY=VALUE]...
//
// Its views point into the line.
struct RouteLine : ProxyRules {
  std::string_view urls = {};                         // separated by commas; parse_route_line does not look at them
  std::string_view hosts = {};                        // host=A[,B...]: whom the client asks; empty: anybody
  unsigned char weights[UpstreamServer::kMost] = {};  // weights=N[,N...], one for each URL, 1 to 100; not given: 0

  // admits tells whether the route is for a client that asks `authority`: a host, in any case, maybe with a port.
  bool admits(std::string_view authority) const noexcept;
};

// RouteFault says which word of a line is wrong, and the cure.
struct RouteFault {
  std::string_view word;
  const char* what;
  const char* cure;
};

// is_trusted tells whether an address is one of a list: addresses ("::1"), networks ("10.0.0.0/8"), or "unix" for
// whoever comes by a Unix socket.
bool is_trusted(std::string_view list, const Address& address) noexcept;

// parse_route_line reads a line without its end into `route`, which is new. False: the line is empty or a comment, which
// begins with '#'. A field that frames, routes or belongs to one hop can be neither set nor dropped.
[[nodiscard]] std::expected<bool, RouteFault> parse_route_line(std::string_view line, RouteLine& route) noexcept;

}  // namespace coir::http
