// How a table comes to count, and how what nobody holds goes. Declared in proxy/routes/proxy_state.h.
#include "proxy/routes/proxy_state.h"

#include <coir/fiber.h>
#include <coir/format.h>
#include <string.h>

#include <algorithm>
#include <span>

#include "proxy/routes/route_servers.h"

#if COIR_TLS
#include <coir/tls.h>
#endif

namespace coir::http {
ProxyState* ProxyState::create(const ProxyOptions& options) noexcept {
  auto forwarder = Forwarder::create();
  return forwarder ? make_charged<ProxyState>(0, std::move(*forwarder), options) : nullptr;
}

void ProxyState::destroy(ProxyState* state) noexcept {
  free_charged(state, 0);
}

// The server has stopped: nobody holds anything any more.
ProxyState::~ProxyState() {
  if (current_ != nullptr) retired_.push_back(*std::exchange(current_, nullptr));
  sweep();
}

std::expected<ProxyChange, ProxyFault> ProxyState::apply(ProxyTable& table) noexcept {
  // acquire pairs with the release below: what the last call has left is seen.
  if (applying_.exchange(true, std::memory_order_acquire))
    return std::unexpected(ProxyFault{.route = 0, .error = Error{ErrorCode::busy}});
  std::expected<ProxyChange, ProxyFault> changed = ProxyChange();
  Running* const made = make_charged<Running>(0);
  if (made == nullptr) {
    changed = std::unexpected(ProxyFault{.route = 0, .error = Error{ErrorCode::no_memory}});
  } else if (auto prepared = prepare(*made, *table.list_); !prepared) {
    undo(*made);
    free_charged(made, 0);
    changed = std::unexpected(prepared.error());
  } else {
    commit(*made, *table.list_, *changed);
  }
  applying_.store(false, std::memory_order_release);
  if (changed) sweep();
  return changed;
}

void ProxyState::be_one_route(std::span<const UpstreamServer> servers, const ProxyRules& rules) noexcept {
  watches_itself_ = !rules.health.empty() || static_cast<bool>(options_.on_change);
  const auto note = [this](std::string_view word, std::string_view what, std::string_view cure) {
    Formatter text(problem_);
    text.add("proxy to '", word.substr(0, 80), "': ", what, cure.empty() ? "" : "; ", cure);
    problem_bytes_ = static_cast<std::uint8_t>(text.text().size());
  };
  const std::string_view first = servers.empty() ? std::string_view() : servers.front().url;
  auto table = ProxyTable::create();
  if (!table) return note(first, describe(table.error()), {});
  if (const auto added = table->add(servers, rules); !added)
    return note(added.error().word, added.error().what, added.error().cure);
  const auto applied = apply(*table);
  if (applied) return;
  const bool untrusted = applied.error().error == ErrorCode::unsupported && rules.auth.empty();
  note(first, untrusted ? "https wants ProxyOptions::tls" : describe(applied.error().error), {});
}

std::expected<void, Error> ProxyState::watch() noexcept {
  std::expected<void, Error> all;
  const ProxyHold held = hold();
  for (std::size_t i = 0; i < held.size(); ++i) {
    if (auto watched = held.upstreams(i).watch(); !watched) all = watched;
  }
  return all;
}

// prepare finds or makes what the table needs. No other call changes current_ meanwhile, which holds its routes; running
// exchanges are not affected.
std::expected<void, ProxyFault> ProxyState::prepare(Running& made, const ProxyTable::List& list) noexcept {
  for (std::size_t i = 0; i < list.count; ++i) {
    ProxyRoute* const route = list.routes[i];
    ProxyRoute* same = nullptr;
    for (std::size_t k = 0; current_ != nullptr && k < current_->count && same == nullptr; ++k) {
      ProxyRoute* const before = current_->routes[k];
      if (before->is_line && route->is_line && before->text() == route->text()) same = before;
    }
    if (same == nullptr) {
      const RouteLine& line = route->line;
      if (!line.auth.empty() && !options_.admits)
        return std::unexpected(ProxyFault{.route = i, .error = Error{ErrorCode::unsupported}});
      if (line.rate != 0 && !route->clients.is_open() &&
          !route->clients.open_rate(ProxyRoute::kClients, line.rate, line.burst))
        return std::unexpected(ProxyFault{.route = i, .error = Error{ErrorCode::no_memory}});
      const auto group = group_for(made, *route);
      if (!group) return std::unexpected(ProxyFault{.route = i, .error = group.error()});
      route->group = *group;
    }
    ProxyRoute* const chosen = same != nullptr ? same : route;
    made.routes[made.count++] = chosen;
    const auto has_its_group = [chosen](const ProxyRoute* first) { return first->group == chosen->group; };
    if (std::ranges::none_of(std::span(made.firsts).first(made.groups), has_its_group))
      made.firsts[made.groups++] = chosen;
  }
  return {};
}

std::expected<ProxyGroup*, Error> ProxyState::group_for(const Running& made, const ProxyRoute& route) noexcept {
  for (const Running* const table : {static_cast<const Running*>(current_), &made}) {
    for (std::size_t i = 0; table != nullptr && i < table->count; ++i) {
      if (table->routes[i]->group->serves(route.line)) return table->routes[i]->group;
    }
  }
  const RouteLine& line = route.line;
  UpstreamServer servers[Upstreams::kMost];
  std::size_t count = 0;
  for (std::string_view rest = line.urls; !rest.empty() && count < std::size(servers); ++count) {
    servers[count].url = next_item(rest);
    if (line.weights[count] != 0) servers[count].weight = line.weights[count];
  }
  const std::size_t bytes = ProxyGroup::text_bytes(line);
  auto* const group = make_charged<ProxyGroup>(bytes, bytes);
  if (group == nullptr) return std::unexpected(Error{ErrorCode::no_memory});
  group->take_texts(line);
  group->balance = line.balance;
  group->max_connections = line.max_connections;
  group->slow_start = line.slow_start;
  group->health_interval = line.health_interval;
  std::ranges::copy(line.weights, group->weights);
#if COIR_TLS
  const bool has_tls = options_.tls != nullptr && *options_.tls;
#else
  constexpr bool has_tls = false;
#endif
  const UpstreamOptions own{
      .balance = line.balance,
      .tls = has_tls ? options_.tls : nullptr,
      .most_in_use = line.max_connections,
      .slow_start = line.slow_start,
      .health = {.path = group->health, .host = group->health_host, .interval = line.health_interval},
      .on_change = options_.on_change};
  auto upstreams = Upstreams::create(std::span(servers).first(count), own);
  if (!upstreams) {
    free_group(group);
    return std::unexpected(upstreams.error());
  }
  group->upstreams.emplace(std::move(*upstreams));
  return group;
}

// undo destroys the groups that prepare has made: no route counts for them yet.
void ProxyState::undo(Running& made) noexcept {
  for (std::size_t i = 0; i < made.count; ++i) {
    ProxyGroup* const group = made.routes[i]->group;
    if (made.routes[i]->users.load(std::memory_order_relaxed) != 0) continue;
    for (std::size_t k = i; k < made.count; ++k) {
      if (made.routes[k]->group == group) made.routes[k]->group = nullptr;
    }
    if (group == nullptr) continue;
    bool unused;
    {
      const Locked locked(lock_);
      unused = group->routes == 0;
    }
    if (unused) free_group(group);
  }
}

void ProxyState::commit(Running& made, ProxyTable::List& list, ProxyChange& change) noexcept {
  std::size_t before;
  {
    const Locked locked(lock_);
    for (std::size_t i = 0; i < made.count; ++i) {
      ProxyRoute& route = *made.routes[i];
      if (&route != list.routes[i]) {
        ++change.kept;
      } else {
        ++change.added;
        routes_.push_back(route);
        if (route.group->routes++ == 0) groups_.push_back(*route.group);
        list.routes[i] = nullptr;
      }
      route.users.fetch_add(1, std::memory_order_relaxed);
    }
    before = current_ != nullptr ? current_->count : 0;
    if (current_ != nullptr) {
      retired_.push_back(*current_);
      left_over_.store(true, std::memory_order_relaxed);
    }
    current_ = &made;
  }
  change.removed = before - change.kept;
  for (ProxyRoute* const unused : std::span(list.routes).first(list.count)) {
    if (unused != nullptr) free_route(unused);
  }
  list.count = 0;
}

// sweep takes out what nobody holds and destroys it behind the lock, as a group that goes may wait for a wake that runs.
void ProxyState::sweep() noexcept {
  coir::detail::IntrusiveList<Running> tables;
  coir::detail::IntrusiveList<ProxyRoute> routes;
  coir::detail::IntrusiveList<ProxyGroup> groups;
  {
    const Locked locked(lock_);
    // acquire pairs with the release of whoever lets go: nothing is touched behind that.
    for (Running *each = retired_.front(), *after; each != nullptr; each = after) {
      after = each->next;
      if (each->lookers.load(std::memory_order_acquire) != 0) continue;
      for (ProxyRoute* const route : std::span(each->routes).first(each->count)) {
        route->users.fetch_sub(1, std::memory_order_relaxed);
      }
      retired_.remove(*each);
      tables.push_back(*each);
    }
    for (ProxyRoute *each = routes_.front(), *after; each != nullptr; each = after) {
      after = each->next;
      if (each->users.load(std::memory_order_acquire) != 0) continue;
      routes_.remove(*each);
      routes.push_back(*each);
      if (--each->group->routes != 0) continue;
      groups_.remove(*each->group);
      groups.push_back(*each->group);
    }
    left_over_.store(is_left_over(), std::memory_order_relaxed);
  }
  while (Running* const table = tables.front()) {
    tables.remove(*table);
    free_charged(table, 0);
  }
  while (ProxyRoute* const route = routes.front()) {
    routes.remove(*route);
    free_route(route);
  }
  while (ProxyGroup* const group = groups.front()) {
    groups.remove(*group);
    free_group(group);
  }
}

bool ProxyState::is_left_over() const noexcept {
  return !retired_.empty() || routes_.size() != (current_ != nullptr ? current_->count : 0);
}

ProxyHold ProxyState::hold() noexcept {
  return {this, take_table()};
}

ProxyHold::~ProxyHold() {
  if (table_ == nullptr) return;
  // release pairs with the acquire in sweep.
  static_cast<ProxyState::Running*>(table_)->lookers.fetch_sub(1, std::memory_order_release);
  state_->tidy();
}

std::size_t ProxyHold::size() const noexcept {
  return table_ != nullptr ? static_cast<ProxyState::Running*>(table_)->groups : 0;
}

const RouteLine& ProxyHold::line(std::size_t group) const noexcept {
  return static_cast<ProxyState::Running*>(table_)->firsts[group]->line;
}

Upstreams& ProxyHold::upstreams(std::size_t group) const noexcept {
  return *static_cast<ProxyState::Running*>(table_)->firsts[group]->group->upstreams;
}

ProxyView ProxyState::view() const noexcept {
  ProxyView view{.streams = forwarder_.streams()};
  const Locked locked(lock_);
  view.routes = current_ != nullptr ? current_->count : 0;
  view.groups = groups_.size();
  for (const ProxyRoute* each = routes_.front(); each != nullptr; each = each->next) {
    view.leaving += each->users.load(std::memory_order_relaxed) != 0;
  }
  view.leaving -= std::min(view.leaving, view.routes);
  return view;
}

}  // namespace coir::http
