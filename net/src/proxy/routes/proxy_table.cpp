// ProxyTable and Proxy, of coir/http/proxy_table.h and coir/http/proxy.h.
#include <coir/format.h>
#include <coir/http/proxy_table.h>
#include <string.h>

#include <algorithm>
#include <span>

#include "proxy/routes/proxy_state.h"
#include "proxy/routes/route_servers.h"
#include "proxy/upstreams/upstream.h"

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
    return table_fault(line.substr(0, 32), "the line is longer than 2048 bytes", "shorten it");
  ProxyRoute* const made = make_charged<ProxyRoute>(line.size(), line.size());
  if (made == nullptr) return table_fault(line.substr(0, line.find(' ')), "no memory for the route", "see --memory");
  const auto read = read_line(*made, line);
  if (read && *read) {
    made->make_rules();
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
  if (const auto checked = check(route); !checked) return std::unexpected(checked.error());
  memcpy(reinterpret_cast<char*>(&route + 1), line.data(), line.size());
  ::new (&made) RouteLine;
  static_cast<void>(parse_route_line(route.text(), made));
  route.base = path_of(made.urls.substr(0, made.urls.find(',')));
  return true;
}

std::expected<void, RouteFault> ProxyTable::check(ProxyRoute& route) noexcept {
  const RouteLine& made = route.line;
  const auto secure = check_servers(made.prefix, made.urls);
  if (!secure) return std::unexpected(secure.error());
  route.secure = *secure;
  if (list_->count == kMost) return table_fault(made.prefix, "more than 64 routes", "join some of them");
  for (const ProxyRoute* const before : std::span(list_->routes).first(list_->count)) {
    if (before->line.prefix == made.prefix && before->line.hosts == made.hosts)
      return table_fault(made.prefix, "this prefix was given before", "one route for a prefix and a host");
  }
  return {};
}

std::expected<void, RouteFault> ProxyTable::add(std::span<const UpstreamServer> servers,
                                                const ProxyRules& rules) noexcept {
  if (servers.size() > UpstreamServer::kMost) return table_fault(rules.prefix, "more than 16 servers", "name fewer");
  std::size_t bytes = servers.size();
  for (const UpstreamServer& each : servers) bytes += each.url.size();
  ProxyRoute* const made = make_charged<ProxyRoute>(bytes, bytes);
  if (made == nullptr) return table_fault(rules.prefix, "no memory for the route", "see ServeOptions::memory");
  made->is_line = false;
  RouteLine& line = made->line;
  static_cast<ProxyRules&>(line) = rules;
  if (line.burst == 0) line.burst = line.rate;
  Formatter text({reinterpret_cast<char*>(made + 1), bytes});
  for (std::size_t i = 0; i < servers.size(); ++i) {
    text.add(i != 0 ? "," : "", servers[i].url);
    line.weights[i] = static_cast<unsigned char>(std::min(servers[i].weight, 255u));
  }
  line.urls = text.text();
  made->base = path_of(line.urls.substr(0, line.urls.find(',')));
  const auto checked = check(*made);
  if (checked) {
    made->make_rules();
    list_->routes[list_->count++] = made;
    return {};
  }
  // The word may stand in the copy, which goes.
  RouteFault fault = checked.error();
  if (fault.word.data() != rules.prefix.data()) {
    const auto same = std::ranges::find(servers, fault.word, &UpstreamServer::url);
    fault.word = same != servers.end() ? same->url : std::string_view();
  }
  free_charged(made, made->bytes);
  return std::unexpected(fault);
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

Proxy::Proxy(const ProxyOptions& options) noexcept : state_(ProxyState::create(options)) {}

Proxy::Proxy(std::span<const UpstreamServer> servers, const ProxyRules& rules, const ProxyOptions& options) noexcept
    : Proxy(options) {
  if (state_ != nullptr) state_->be_one_route(servers, rules);
}

Proxy::~Proxy() {
  if (state_ != nullptr) ProxyState::destroy(state_);
}

std::string_view Proxy::problem() const noexcept {
  return state_ != nullptr ? state_->problem() : "no memory for a proxy";
}

std::expected<ProxyChange, ProxyFault> Proxy::apply(ProxyTable& table) noexcept {
  if (state_ == nullptr)
    return std::unexpected(ProxyFault{.route = table.size(), .error = Error{ErrorCode::no_memory}});
  return state_->apply(table);
}

std::expected<void, Error> Proxy::watch() noexcept {
  if (state_ == nullptr) return std::unexpected(Error{ErrorCode::no_memory});
  return state_->watch();
}

bool Proxy::serve(Exchange& exchange) noexcept {
  if (problem().empty()) return state_->serve(exchange);
  exchange.respond_status(503);
  return true;
}

void Proxy::operator()(Exchange& exchange) noexcept {
  if (!serve(exchange)) exchange.respond_status(404);
}

}  // namespace coir::http
