// ProxyTable and Proxy, of coir/http/proxy_table.h.
#include <coir/http/proxy_table.h>
#include <string.h>

#include <algorithm>
#include <span>

#include "proxy/routes/proxy_state.h"
#include "proxy/routes/route_servers.h"
#include "proxy/upstream.h"

namespace coir::http {
namespace {

std::unexpected<RouteFault> table_fault(std::string_view word, const char* what, const char* cure) noexcept {
  return std::unexpected(RouteFault{word, what, cure});
}

}  // namespace

std::expected<ProxyTable, Error> ProxyTable::create() noexcept {
  List* const list = make_charged<List>(0);
  if (list == nullptr) return std::unexpected(Error{ErrorCode::no_memory});
  return ProxyTable(list);
}

ProxyTable::~ProxyTable() {
  if (list_ == nullptr) return;
  for (ProxyRoute* const route : std::span(list_->routes).first(list_->count)) free_charged(route, route->bytes);
  free_charged(list_, 0);
}

std::expected<bool, RouteFault> ProxyTable::add(std::string_view line) noexcept {
  while (!line.empty() && (line.back() == ' ' || line.back() == '\t' || line.back() == '\r')) line.remove_suffix(1);
  if (line.size() > kMostLine)
    return table_fault(line.substr(0, 32), "the line is longer than 2048 bytes", "say less in it");
  ProxyRoute* const made = make_charged<ProxyRoute>(line.size(), line.size());
  if (made == nullptr) return table_fault(line.substr(0, line.find(' ')), "no memory for the route", "see --memory");
  const auto read = read_line(*made, line);
  if (read && *read) {
    list_->routes[list_->count++] = made;
  } else {
    free_charged(made, made->bytes);
  }
  return read;
}

// read_line reads the line where it is, so that a fault points into it, and then its copy.
std::expected<bool, RouteFault> ProxyTable::read_line(ProxyRoute& route, std::string_view line) noexcept {
  RouteLine& made = route.line;
  if (const auto parsed = parse_route_line(line, made); !parsed || !*parsed) return parsed;
  const auto secure = check_servers(made.prefix, made.urls);
  if (!secure) return secure;
  if (list_->count == kMost) return table_fault(made.prefix, "more than 64 routes", "join some of them");
  for (const ProxyRoute* const before : std::span(list_->routes).first(list_->count)) {
    if (before->line.prefix == made.prefix && before->line.hosts == made.hosts)
      return table_fault(made.prefix, "this prefix was given before", "one route for a prefix and a host");
  }
  memcpy(reinterpret_cast<char*>(&route + 1), line.data(), line.size());
  ::new (&made) RouteLine;
  static_cast<void>(parse_route_line(route.text(), made));
  route.secure = *secure;
  route.base = path_of(made.urls.substr(0, made.urls.find(',')));
  return true;
}

std::size_t ProxyTable::size() const noexcept {
  return list_->count;
}

const RouteLine& ProxyTable::operator[](std::size_t i) const noexcept {
  return list_->routes[i]->line;
}

bool ProxyTable::secure() const noexcept {
  for (const ProxyRoute* const route : std::span(list_->routes).first(list_->count)) {
    if (route->secure) return true;
  }
  return false;
}

std::size_t ProxyTable::memory_bytes() const noexcept {
  std::size_t bytes = sizeof(List) + sizeof(ProxyState::Running);
  for (const ProxyRoute* const route : std::span(list_->routes).first(list_->count)) {
    const std::string_view urls = route->line.urls;
    const auto servers = static_cast<std::size_t>(std::ranges::count(urls, ',')) + 1;
    bytes += sizeof(ProxyRoute) + route->bytes + sizeof(ProxyGroup) + ProxyGroup::text_bytes(route->line) +
             sizeof(UpstreamGroup) + servers * sizeof(UpstreamMember);
    if (route->line.rate != 0) bytes += ClientLimits::rate_bytes(ProxyRoute::kClients);
  }
  return bytes;
}

std::expected<Proxy, Error> Proxy::create(const ProxyGate& gate) noexcept {
  auto state = ProxyState::create(gate);
  if (!state) return std::unexpected(state.error());
  return Proxy(*state);
}

Proxy::~Proxy() {
  if (state_ != nullptr) ProxyState::destroy(state_);
}

std::expected<ProxyChange, ProxyFault> Proxy::apply(ProxyTable& table, const UpstreamOptions& how) noexcept {
  return state_->apply(table, how);
}

std::expected<void, Error> Proxy::watch() noexcept {
  std::expected<void, Error> all;
  const ProxyHold hold = this->hold();
  for (std::size_t i = 0; i < hold.size(); ++i) {
    if (auto watched = hold.upstreams(i).watch(); !watched) all = watched;
  }
  return all;
}

ProxyHold Proxy::hold() const noexcept {
  return state_->hold();
}

const Forwarder& Proxy::forwarder() const noexcept {
  return state_->forwarder();
}

bool Proxy::serve(Exchange& exchange) noexcept {
  return state_->serve(exchange);
}

ForwardCounters& Proxy::counters() const noexcept {
  return state_->forwarder().counters();
}

ProxyView Proxy::view() const noexcept {
  return state_->view();
}

}  // namespace coir::http
