// How an exchange is answered by a route. Declared in proxy/routes/proxy_state.h.
#include <coir/fiber.h>

#include "proxy/routes/proxy_state.h"
#include "proxy/routes/route_servers.h"
#include "proxy/routes/route_values.h"

namespace coir::http {

bool ProxyState::serve(Exchange& exchange) noexcept {
  ProxyRoute* const route = find(exchange.request());
  if (route == nullptr) return false;
  serve(exchange, *route);
  leave(*route);
  return true;
}

// serve by a route has a frame of its own, as what it calls goes deep.
[[gnu::noinline]] void ProxyState::serve(Exchange& exchange, ProxyRoute& route) noexcept {
  if (climbs(exchange.request().path)) return exchange.respond_status(400);
  if (watches_itself_) static_cast<void>(route.group->upstreams->watch());
  RequestRules own;
  put_base(exchange.request(), route, own);
  if (admits(exchange, route, own)) forwarder_.forward(exchange, route.group->upstreams->group(), route.rules, own);
}

void ProxyRoute::make_rules() noexcept {
  rules = {.host = line.host,
           .sends_forwarded = line.forwarded,
           .request_id = line.request_id,
           .max_body = line.max_body,
           .body_timeout = line.body_timeout,
           .body_rate = line.body_rate,
           .request_lines = line.request.lines(),
           .request_drops = line.request.drops(),
           .response_lines = line.response.lines(),
           .response_drops = line.response.drops(),
           .rest_idle = line.rest_idle,
           .max_waiting = line.max_waiting,
           .waiting = &waiting,
           .streams = &users};
  if (line.max_head != 0) rules.max_head = line.max_head;
  if (line.connect.count() != 0) rules.connect = line.connect;
  if (line.first_byte.count() != 0) rules.first_byte = line.first_byte;
  if (line.idle.count() != 0) rules.idle = line.idle;
}

// admits tells whether an exchange keeps to its route's limits. False: it has been answered. Values that depend on the client
// are put into the request's own rules.
[[gnu::noinline]] bool ProxyState::admits(Exchange& exchange, ProxyRoute& route, RequestRules& own) noexcept {
  const RouteLine& line = route.line;
  const bool hashes = line.balance == Balance::hash;
  if (line.rate != 0 || hashes || !line.trust.empty()) {
    // A peer that has gone has no address, and nobody waits for the answer.
    if (const auto peer = exchange.peer_address()) {
      own.trusts_peer = !line.trust.empty() && is_trusted(line.trust, *peer);
      const auto key = ClientLimits::key_of(client_behind(*peer, line.trust, exchange.request().headers));
      if (hashes) own.hash_key = key;
      if (line.rate != 0 && !route.clients.may_ask_once(key)) {
        forwarder_.counters().limited.fetch_add(1, std::memory_order_relaxed);
        exchange.respond_status(429, "Retry-After: 1\r\n");
        return false;
      }
    }
  }
  return line.auth.empty() || options_.admits(exchange, line.auth);
}

ProxyRoute* ProxyState::find(const Request& request) noexcept {
  Running* const table = take_table();
  if (table == nullptr) return nullptr;
  ProxyRoute* best = nullptr;
  for (ProxyRoute* const each : std::span(table->routes).first(table->count)) {
    if (!rest_below(request.path, each->line.prefix) || !each->line.admits(request.authority)) continue;
    const bool names = !each->line.hosts.empty(), best_names = best != nullptr && !best->line.hosts.empty();
    if (best == nullptr || (names != best_names ? names : each->line.prefix.size() > best->line.prefix.size()))
      best = each;
  }
  if (best != nullptr) best->users.fetch_add(1, std::memory_order_relaxed);
  // release pairs with the acquire in sweep.
  table->lookers.fetch_sub(1, std::memory_order_release);
  return best;
}

void ProxyState::leave(ProxyRoute& route) noexcept {
  // release pairs with the acquire in sweep.
  route.users.fetch_sub(1, std::memory_order_release);
  tidy();
}

// take_table has the table that counts stay until its `lookers` is lowered again; null: there is none.
ProxyState::Running* ProxyState::take_table() noexcept {
  const Locked locked(lock_);
  if (current_ != nullptr) current_->lookers.fetch_add(1, std::memory_order_relaxed);
  return current_;
}

// tidy does what is due once somebody has let go. A plain thread cannot wait for the wakes of a group that goes.
void ProxyState::tidy() noexcept {
  if (left_over_.load(std::memory_order_relaxed) && current().id() != 0) sweep();
}

// put_base has the route's base take the prefix's place, with one slash between it and the rest.
void ProxyState::put_base(const Request& request, const ProxyRoute& route, RequestRules& own) noexcept {
  if (route.base.empty()) return;
  const std::string_view rest = rest_below(request.path, route.line.prefix).value_or("");
  const bool slash = rest.starts_with('/') || rest.starts_with("%2f") || rest.starts_with("%2F");
  own.base = route.base;
  if (own.base.ends_with('/') && slash) own.base.remove_suffix(1);
  own.joins = !own.base.ends_with('/') && !rest.empty() && !slash;
  own.replaced = static_cast<std::uint32_t>(request.path.size() - rest.size());
}

}  // namespace coir::http
