#pragma once

#include <coir/detail/accounts.h>
#include <coir/detail/intrusive_list.h>
#include <coir/http/proxy_table.h>
#include <coir/spinlock.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <utility>

#include "base/charged.h"
#include "http/connection/client_limits.h"
#include "proxy/forwarder.h"
#include "proxy/gateway_metrics.h"

namespace coir::http {

// make_charged and free_charged are new and delete of a T with `behind` bytes behind it, charged to account::http.
template <class T, class... Arguments>
T* make_charged(std::size_t behind, Arguments&&... arguments) noexcept {
  void* const memory = take_charged(account::http, sizeof(T) + behind);
  return memory != nullptr ? ::new (memory) T(std::forward<Arguments>(arguments)...) : nullptr;
}
template <class T>
void free_charged(T* one, std::size_t behind) noexcept {
  if (one == nullptr) return;
  one->~T();
  give_charged(account::http, one, sizeof(T) + behind);
}

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

// ProxyGroup is a group of servers, which routes share (proxy_group.cpp). The text of its views is stored behind it.
struct ProxyGroup {
  explicit ProxyGroup(std::size_t text_bytes) noexcept : bytes(text_bytes) {}

  // text_bytes is how long the texts of a line are that stand behind its group, take_texts copies them there.
  static std::size_t text_bytes(const RouteLine& line) noexcept {
    return line.urls.size() + line.health.size() + host_of(line).size();
  }
  void take_texts(const RouteLine& line) noexcept;
  // host_of is whom checks ask; without them it makes no difference.
  static std::string_view host_of(const RouteLine& line) noexcept {
    return line.health.empty() ? std::string_view() : line.host;
  }
  // serves tells whether the group is what a line asks for.
  bool serves(const RouteLine& line) const noexcept;

  std::optional<Upstreams> upstreams;
  const std::size_t bytes;
  std::string_view urls, health, health_host;
  std::chrono::milliseconds health_interval{}, slow_start{};
  std::uint32_t max_connections = 0;
  Balance balance = Balance::round_robin;
  unsigned char weights[Upstreams::kMost] = {};
  std::size_t routes = 0;  // guarded by the proxy's lock
  ProxyGroup* previous = nullptr;
  ProxyGroup* next = nullptr;
};

// ProxyRoute is a route. Its line, or the addresses of one that was given as values, is stored behind it.
struct ProxyRoute {
  // So many clients of a route with a rate are remembered, of 64 bytes each.
  static constexpr std::size_t kClients = 256;

  explicit ProxyRoute(std::size_t text_bytes) noexcept : bytes(text_bytes) {}

  std::string_view text() const noexcept { return {reinterpret_cast<const char*>(this + 1), bytes}; }
  // make_rules follows the line, which does not change any more (proxy_answer.cpp).
  void make_rules() noexcept;

  RouteLine line;
  ForwardRules rules;
  const std::size_t bytes;
  bool is_line = true;    // so that the same line is the same route
  std::string_view base;  // stands in the prefix's place, if it is not empty
  bool secure = false;    // a server is asked by https
  ProxyGroup* group = nullptr;
  ClientLimits clients;  // by RouteLine::rate, once the table counts
  // Tables that have the route, its exchanges, streams and tunnels. From 0 it never rises again.
  Atomic<std::uint32_t> users = 0;
  Atomic<std::uint32_t> waiting = 0;  // exchanges, by RouteLine::max_waiting
  ProxyRoute* previous = nullptr;
  ProxyRoute* next = nullptr;
};

struct ProxyTable::List {
  ProxyRoute* routes[kMost] = {};
  std::size_t count = 0;
};

// ProxyState is a Proxy.
//
// A search for a route holds the table meanwhile, and the exchange, stream or tunnel that comes of it holds the
// route: by counts, and lock_ is held for no more than to take the table that counts. A table that is held no more is
// removed under lock_ and destroyed after it: by the next exchange that ends, or by apply. So a table is never
// changed once it counts, and nothing that is held is destroyed.
//
//   current_ --> Running table --> ProxyRoute --> ProxyGroup
//   retired_ --> Running table -------^ ^
//                    exchange, stream --+
class ProxyState final : public GatewayPart {
 public:
  // Null: there is no memory.
  static ProxyState* create(const ProxyOptions& options) noexcept;
  static void destroy(ProxyState* state) noexcept;
  ProxyState(Forwarder&& forwarder, const ProxyOptions& options) noexcept
      : options_(options), forwarder_(std::move(forwarder)) {}
  ~ProxyState();

  std::expected<ProxyChange, ProxyFault> apply(ProxyTable& table) noexcept;
  // be_one_route makes the table of a proxy that has but one route.
  void be_one_route(std::span<const UpstreamServer> servers, const ProxyRules& rules) noexcept;
  std::string_view problem() const noexcept { return {problem_, problem_bytes_}; }
  std::expected<void, Error> watch() noexcept;
  bool serve(Exchange& exchange) noexcept;

  ProxyView view() const noexcept;
  ProxyHold hold() noexcept;

  // These are GatewayPart's (proxy_metrics.cpp).
  void each_group(const Callable<void(const GatewayGroup& group)>& visit) noexcept override;
  const Forwarder* counted() const noexcept override { return &forwarder_; }

 private:
  // Running is a table that counts, or has.
  struct Running {
    ProxyRoute* routes[ProxyTable::kMost] = {};
    std::size_t count = 0;
    ProxyRoute* firsts[ProxyTable::kMost] = {};  // of each group the first route
    std::size_t groups = 0;
    Atomic<std::uint32_t> lookers = 0;
    Running* previous = nullptr;
    Running* next = nullptr;
  };
  using Routes = coir::detail::CountedList<ProxyRoute>;
  using Groups = coir::detail::CountedList<ProxyGroup>;

  // proxy_state.cpp
  std::expected<ProxyGroup*, Error> group_for(const Running& made, const ProxyRoute& route) noexcept;
  std::expected<void, ProxyFault> prepare(Running& made, const ProxyTable::List& list) noexcept;
  void undo(Running& made) noexcept;
  void commit(Running& made, ProxyTable::List& list, ProxyChange& change) noexcept;
  void sweep() noexcept;
  bool is_left_over() const noexcept;
  static void free_route(ProxyRoute* route) noexcept { free_charged(route, route->bytes); }
  static void free_group(ProxyGroup* group) noexcept { free_charged(group, group->bytes); }

  // proxy_answer.cpp: find holds the route that it returns; null: there is none.
  ProxyRoute* find(const Request& request) noexcept;
  void leave(ProxyRoute& route) noexcept;
  Running* take_table() noexcept;
  void tidy() noexcept;
  void serve(Exchange& exchange, ProxyRoute& route) noexcept;
  bool admits(Exchange& exchange, ProxyRoute& route, RequestRules& own) noexcept;
  static void put_base(const Request& request, const ProxyRoute& route, RequestRules& own) noexcept;

  const ProxyOptions options_;
  Forwarder forwarder_;
  mutable Spinlock lock_;
  Running* current_ = nullptr;                    // guarded by lock_; what it points to is changed by nobody
  coir::detail::IntrusiveList<Running> retired_;  // guarded by lock_
  Routes routes_;                                 // of current_, and those that are still held; guarded by lock_
  Groups groups_;                                 // of these; guarded by lock_
  Atomic<bool> applying_ = false;
  Atomic<bool> left_over_ = false;  // something is held that no exchange to come will find
  bool watches_itself_ = false;     // with one route, once a server asks it
  std::uint8_t problem_bytes_ = 0;
  char problem_[200];

  friend class ProxyTable;
  friend class ProxyHold;
};

}  // namespace coir::http
