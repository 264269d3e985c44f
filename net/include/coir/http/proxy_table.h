#pragma once

#include <coir/port/needs_fibers.h>

#if !COIR_PROXY
#error "this build of coir has no reverse proxy: configure it with -DCOIR_PROXY=ON"
#endif

#include <coir/error.h>
#include <coir/http/exchange.h>
#include <coir/http/proxy.h>
#include <coir/http/route_line.h>

#include <cstddef>
#include <expected>
#include <string_view>
#include <utility>

namespace coir::http {

struct ProxyRoute;
class ProxyState;

// ProxyTable is a list of routes that a Proxy can pass exchanges on by. Move-only; its memory is charged to
// account::http.
class ProxyTable {
 public:
  static constexpr std::size_t kMost = 64, kMostLine = 2048;

  // Errors: no_memory.
  [[nodiscard]] static std::expected<ProxyTable, Error> create() noexcept;
  ProxyTable(ProxyTable&& other) noexcept : list_(std::exchange(other.list_, nullptr)) {}
  ProxyTable& operator=(ProxyTable&&) = delete;
  ~ProxyTable();

  // add reads a line without its end (coir/http/route_line.h) and copies it. False: the line is empty or a comment. A
  // fault's word points into `line`. Of two routes no prefix and hosts may be the same.
  [[nodiscard]] std::expected<bool, RouteFault> add(std::string_view line) noexcept;

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

// ProxyHold keeps a table and the groups of its servers as they are: who looks at them may wait meanwhile. Another table
// may count by then.
class ProxyHold {
 public:
  ProxyHold(ProxyHold&& other) noexcept
      : state_(std::exchange(other.state_, nullptr)), table_(std::exchange(other.table_, nullptr)) {}
  ProxyHold& operator=(ProxyHold&&) = delete;
  ~ProxyHold();

  // size is how many groups there are; of each, line is the first route that has it.
  std::size_t size() const noexcept;
  const RouteLine& line(std::size_t group) const noexcept;
  Upstreams& upstreams(std::size_t group) const noexcept;

 private:
  friend class ProxyState;
  ProxyHold(ProxyState* state, void* table) noexcept : state_(state), table_(table) {}

  ProxyState* state_;
  void* table_;  // null: there is none
};

// ProxyView is a proxy at a moment.
struct ProxyView {
  std::size_t routes = 0;   // of the table
  std::size_t groups = 0;   // of servers, those that removed routes still use among them
  std::size_t leaving = 0;  // removed routes whose last exchange, stream or tunnel has not ended
  std::size_t streams = 0;  // responses and tunnels that rest
};

// ProxyGate judges exchanges for routes with auth=. `admits` gets the name that stands there; where it returns false it
// has answered. On a fiber; it may wait.
struct ProxyGate {
  bool (*admits)(void* context, Exchange& exchange, std::string_view auth) noexcept = nullptr;
  void* context = nullptr;
};

// Proxy answers exchanges by a table of routes that can be exchanged while it runs.
//
//   auto proxy = Proxy::create();
//   auto table = ProxyTable::create();
//   if (auto added = table->add("/api http://127.0.0.1:8081"); !added) ... added.error() tells word and cure
//   if (auto applied = proxy->apply(*table); !applied) ...
//   handler:  if (!proxy->serve(exchange)) exchange.respond_status(404);
//
// A route whose line a new table has too stays as it is: its exchanges, streams, tunnels, pooled connections and the
// state of its servers. Routes of different lines with the same servers, weights and balance share one group, over
// tables too. A route that a table lacks takes no new exchange; what it has begun ends on its own, and its group goes
// with the last of it.
//
// One server's, as Forwarder is; destroyed inside the run, after the server has stopped.
class Proxy {
 public:
  // The gate's context outlives the proxy. Errors: no_memory.
  [[nodiscard]] static std::expected<Proxy, Error> create(const ProxyGate& gate = {}) noexcept;
  Proxy(Proxy&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  Proxy& operator=(Proxy&&) = delete;
  ~Proxy();

  // apply puts `table` in the place of the one before and leaves it empty. On an error nothing has changed, and `table`
  // is what it was. `how` is for the groups that are new: of it `balance`, `slow_start` and `health` are the lines' own,
  // and what it refers to outlives the proxy. Before the run or on a fiber; it asks nobody, and waits for no more than
  // the fibers of groups that go.
  // Errors: invalid (an address, a weight or a path of health), unsupported (https without how.tls, auth= without a
  // gate), no_memory, busy (another call is under
  // way).
  [[nodiscard]] std::expected<ProxyChange, ProxyFault> apply(ProxyTable& table,
                                                             const UpstreamOptions& how = {}) noexcept;

  // watch looks after the servers of the table, as Upstreams::watch does; those that are already watched stay so. On a
  // fiber, and again behind apply. Errors: those of spawn; the others are watched all the same.
  [[nodiscard]] std::expected<void, Error> watch() noexcept;
  ProxyHold hold() const noexcept;

  // serve answers an exchange by the route for its host and path: a route that names the host comes before those for
  // anybody, then the longest prefix. Of a route's limits those that the exchange meets first answer it: 429 for a client
  // that asks too often, of IPv6 by its /64; what the gate says; 413. Unix sockets have no rate. False: there is none, and nothing has been answered. In a handler, on a fiber.
  bool serve(Exchange& exchange) noexcept;
  void operator()(Exchange& exchange) noexcept {
    if (!serve(exchange)) exchange.respond_status(404);
  }

  const Forwarder& forwarder() const noexcept;
  ForwardCounters& counters() const noexcept;
  ProxyView view() const noexcept;

 private:
  explicit Proxy(ProxyState* state) noexcept : state_(state) {}

  ProxyState* state_;
};

}  // namespace coir::http
