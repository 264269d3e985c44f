#pragma once

#include <coir/deadline.h>
#include <coir/http/upstreams.h>
#include <coir/net/address.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string_view>

namespace coir::http {

// FieldChanges is what a route does to the fields of a head: ForwardRules's lines and drops.
struct FieldChanges {
  static constexpr std::size_t kMost = 4;
  static constexpr std::size_t kLineBytes = 128;

  std::string_view names[kMost] = {};  // dropped, those that are set among them
  std::size_t count = 0;
  std::size_t size = 0;
  char memory[kLineBytes];  // "Name: value\r\n" of each field that is set

  std::span<const std::string_view> drops() const noexcept { return {names, count}; }
  std::string_view lines() const noexcept { return {memory, size}; }
};

// RouteLine is one line of a file of routes:
//
//   PREFIX URL[,URL...] [KEY=VALUE]...
//
// Its views point into the line.
struct RouteLine {
  std::string_view prefix = {};
  std::string_view urls = {};   // separated by commas; parse_route_line does not look at them
  std::string_view hosts = {};  // host=A[,B...]: whom the client asks; empty: anybody
  std::string_view host = {};   // send-host=NAME: what the upstream is told as Host; empty: what the client said
  Balance balance = Balance::round_robin;        // balance=turn, =least or =client: hash, by the client's address
  unsigned char weights[Upstreams::kMost] = {};  // weights=N[,N...], one for each URL, 1 to 100; not given: 0
  std::uint32_t max_connections = 0;             // max-connections=N: UpstreamOptions::most_in_use
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
  bool forwarded = false;       // forwarded: ForwardRules::sends_forwarded
  bool request_id = false;      // request-id: each has one, ForwardRules::request_id
  std::uint32_t max_head = 0;   // head=BYTES: ForwardRules::max_head, 4K to 48K; 0: as there
  std::chrono::milliseconds connect{};  // connect=TIME and so on, of ForwardRules; 0: as there
  std::chrono::milliseconds first_byte{};
  std::chrono::milliseconds idle{};
  std::chrono::milliseconds rest_idle{};
  std::uint32_t max_waiting = 0;  // ForwardRules::max_waiting

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
