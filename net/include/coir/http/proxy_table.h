#pragma once

// Routes of a proxy that can be replaced while it runs.
//
//   Proxy proxy;
//   auto table = ProxyTable::create();
//   if (!table) return complain(table.error());
//   if (auto added = table->add("/api http://127.0.0.1:8081 rate=10"); !added) return complain(added.error().what);
//   if (auto applied = proxy.apply(*table); !applied) return complain("the table does not fit");

#include <coir/error.h>
#include <coir/http/exchange.h>
#include <coir/http/proxy.h>
#include <coir/net/address.h>

#include <cstddef>
#include <expected>
#include <span>
#include <string_view>
#include <utility>

namespace coir::http {

struct ProxyRoute;
class ProxyState;

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

// ProxyTable is a list of routes for a Proxy, which can replace it while it runs:
//
//   Proxy proxy;
//   auto table = ProxyTable::create();
//   if (auto added = table->add("/api http://127.0.0.1:8081 rate=10"); !added) complain(added.error().word);
//   if (auto applied = proxy.apply(*table); !applied) ...
//
// A route whose line a new table has too stays as it is: its exchanges, streams, tunnels, pooled connections and the
// state of its servers. Routes of different lines with the same servers, weights and balance share one group, over
// tables too. A route that a table lacks takes no new exchange; its exchanges end on their own, and its group goes with
// the last of them. Move-only; its memory is charged to account::http.
class ProxyTable {
 public:
  static constexpr std::size_t kMost = 64, kMostLine = 2048;

  // Errors: no_memory.
  [[nodiscard]] static std::expected<ProxyTable, Error> create() noexcept;
  ProxyTable(ProxyTable&& other) noexcept : list_(std::exchange(other.list_, nullptr)) {}
  ProxyTable& operator=(ProxyTable&&) = delete;
  ~ProxyTable();

  // add reads a line without its end (parse_route_line) and copies it. False: the line is empty or a comment. A
  // fault's word points into `line`. No two routes may have the same prefix and hosts.
  [[nodiscard]] std::expected<bool, RouteFault> add(std::string_view line) noexcept;
  // This adds a route of values. It copies the addresses; the rules' views outlive the proxy.
  [[nodiscard]] std::expected<void, RouteFault> add(std::span<const UpstreamServer> servers,
                                                    const ProxyRules& rules) noexcept;

  std::size_t size() const noexcept;
  const RouteLine& operator[](std::size_t i) const noexcept;
  // secure tells whether a server is asked by https: Proxy::apply then wants a context.
  bool secure() const noexcept;
  // memory_bytes is what the ledger is charged for the table once it is applied, with the groups of its servers and what
  // rates take. While another takes its place both are there.
  std::size_t memory_bytes() const noexcept;

 private:
  friend class ProxyState;
  struct List;
  std::expected<bool, RouteFault> read_line(ProxyRoute& route, std::string_view line) noexcept;
  std::expected<void, RouteFault> check(ProxyRoute& route) noexcept;
  explicit ProxyTable(List* list) noexcept : list_(list) {}

  List* list_;
};

// ProxyChange is what a table has changed, in routes.
struct ProxyChange {
  std::size_t kept = 0;     // that the table before had too, line for line
  std::size_t added = 0;    // or changed
  std::size_t removed = 0;  // or changed
};

// ProxyFault says which route of a table cannot be used, and why.
struct ProxyFault {
  std::size_t route = 0;  // its number in the table
  Error error;
};

}  // namespace coir::http
