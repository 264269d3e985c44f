#include "gateway.h"

#include "complaint.h"
#include "option_table.h"
#include "upstream_trust.h"

#include <coir/program.h>
#if COIRD_GATEWAY
#include <coir/file.h>
#include <coir/format.h>
#include <coir/http/accounts.h>

#include <algorithm>
#endif

#if COIRD_GATEWAY

namespace {

constexpr const char* kForm = "such as /api=http://127.0.0.1:8081";
constexpr std::size_t kMostText = 64 * 1024;  // of the file of routes

using coir::http::ProxyTable;

// add_line adds what an option says.
std::expected<bool, coir::http::RouteFault> add_line(ProxyTable& table, const Options::Proxied& proxied) noexcept {
  char line[768];
  coir::Formatter text(line);
  text.add(proxied.prefix, " ", proxied.urls);
  if (!text.fits()) return std::unexpected(coir::http::RouteFault{proxied.prefix, "too long", "name it in --routes"});
  auto added = table.add(text.text());
  if (!added) {
    // Its word lies in the line, which goes.
    std::string_view& word = added.error().word;
    const auto at = static_cast<std::size_t>(word.data() - line), urls = proxied.prefix.size() + 1;
    word = at < urls ? proxied.prefix.substr(0, word.size()) : proxied.urls.substr(at - urls, word.size());
  }
  return added;
}

// add_proxied takes "PREFIX=URL[,URL...]" of --proxy.
bool add_proxied(const char* text, Options& options) noexcept {
  const auto wrong = [text](const char* cure, std::initializer_list<Word> what) {
    Word words[6] = {"--proxy '", text, "': ", "", "", ""};
    std::ranges::copy(what, words + 3);
    return complain(cure, {words[0], words[1], words[2], words[3], words[4], words[5]});
  };
  if (options.proxied_count == Options::kMaxProxied) return wrong(kSeeHelp, {"more than ", Options::kMaxProxied});
  const std::string_view all = text;
  const std::size_t equals = all.find('=');
  if (equals == all.npos || all.front() != '/' || all.find_first_of(" \t") != all.npos)
    return wrong(kForm, {"not PREFIX=URL"});
  const Options::Proxied made{.prefix = all.substr(0, equals), .urls = all.substr(equals + 1)};
  for (const auto& before : std::span(options.proxied).first(options.proxied_count)) {
    if (before.prefix == made.prefix) return wrong(kSeeHelp, {"this prefix was given before"});
  }
  auto table = ProxyTable::create();
  if (!table) return wrong(kSeeHelp, {table.error()});
  if (const auto added = add_line(*table, made); !added)
    return wrong(added.error().cure, {added.error().word, ": ", added.error().what});
  options.proxied[options.proxied_count++] = made;
  return true;
}

// add_file adds the routes of a file. What is wrong is named with its line; `stays` says what it means for those that
// there are.
bool add_file(ProxyTable& table, const char* path, const char* stays) noexcept {
  constexpr const char* kCure = "--routes names a file of routes; coird's README.md tells of its lines";
  const auto file = coir::File::open(path);
  if (!file) return complain(kCure, {path, ": ", file.error(), stays});
  const auto text = file->read_all(coir::account::http, kMostText);
  if (!text) return complain(kCure, {path, ": ", text.error(), stays});
  std::size_t number = 0;
  for (std::string_view rest = text->text(); !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    ++number;
    if (const auto added = table.add(line); !added) {
      const coir::http::RouteFault& fault = added.error();
      return complain(fault.cure, {path, ":", number, ": ", fault.word, ": ", fault.what, stays});
    }
  }
  return true;
}

// read makes the table of the options.
std::optional<ProxyTable> read(const Options& options, const char* stays) noexcept {
  auto table = ProxyTable::create();
  if (!table) return complain(kSeeHelp, {"--routes: ", describe(table.error()), stays}), std::nullopt;
  for (const auto& proxied : std::span(options.proxied).first(options.proxied_count)) {
    // It has been read before.
    static_cast<void>(add_line(*table, proxied));
  }
  if (options.routes != nullptr && !add_file(*table, options.routes, stays)) return std::nullopt;
  return std::move(*table);
}

}  // namespace

bool apply_gateway(int chosen, const char* text, Options& options) noexcept {
  if (chosen == kProxy) return add_proxied(text, options);
  (chosen == kRoutes      ? options.routes
   : chosen == kProxyCert ? options.proxy_certificate
   : chosen == kProxyKey  ? options.proxy_key
                          : options.proxy_authorities) = text;
  return true;
}

bool Gateway::open(const Options& options) noexcept {
  coir::http::ProxyGate gate;
#if COIRD_ROUTE_AUTH
  gate.context = &auth_;
  gate.admits = [](void* auth, coir::http::Exchange& exchange, std::string_view path) noexcept {
    return static_cast<RouteAuth*>(auth)->admits(exchange, path);
  };
#endif
  auto proxy = coir::http::Proxy::create(gate);
  if (!proxy) return complain(kSeeHelp, {"--proxy: ", describe(proxy.error())});
  proxy_.emplace(std::move(*proxy));
  return bool(apply(options, ""));
}

bool Gateway::reload(const Options& options) noexcept {
  if (options.routes == nullptr) return false;
  if (const auto change = apply(options, "; the old routes stay")) {
    watch();
    say({"routes read again: ", change->kept, " kept, ", change->added, " new, ", change->removed, " gone"});
  }
  return true;
}

std::optional<std::size_t> Gateway::planned_bytes(const Options& options) noexcept {
  const auto table = read(options, "");
  if (!table) return std::nullopt;
  std::size_t bytes = table->memory_bytes();
#if COIRD_ROUTE_AUTH
  bytes += RouteAuth::planned_bytes(*table);
#endif
  return bytes;
}

std::optional<coir::http::ProxyChange> Gateway::apply(const Options& options, const char* stays) noexcept {
  auto table = read(options, stays);
  if (!table) return std::nullopt;
  coir::http::UpstreamOptions how{.on_change = tell_of_upstream};
#if COIR_TLS
  // The authorities stay as they were read first: groups that stay refer to them.
  if (table->secure() && !trust_ && !(trust_ = load_upstream_trust(options))) return std::nullopt;
  if (trust_) how.tls = &trust_;
#endif
#if COIRD_ROUTE_AUTH
  const std::size_t most_waiting = options.server.max_active / 2;
  if (!auth_.load(*table, most_waiting, *stays == '\0' ? "coird --help tells of --routes" : stays + 2)) {
    return std::nullopt;
  }
#endif
  const auto changed = proxy_->apply(*table, how);
#if COIRD_ROUTE_AUTH
  if (changed) auth_.settle();
#endif
  if (changed) return *changed;
  if (changed.error().route >= table->size())
    return complain(kSeeHelp, {"--routes: ", describe(changed.error().error), stays}), std::nullopt;
  const coir::http::RouteLine& line = (*table)[changed.error().route];
  complain(kSeeHelp,
           {"what is passed on, '", line.prefix, "' to ", line.urls, ": ", describe(changed.error().error), stays});
  return std::nullopt;
}

void tell_of_upstream(void*, const coir::http::UpstreamNews& news) noexcept {
  if (news.up) return say({"upstream ", news.server, " is back"});
  say({"upstream ", news.server, " is down: ", news.why});
}

void Gateway::watch() noexcept {
  if (const auto watched = proxy_->watch(); !watched)
    say({"what is passed on: not all servers are watched: ", watched.error()});
}

void Gateway::add_metrics(coir::http::MetricsText& text, const coir::http::GatewayGroups& others) const noexcept {
  // The table and its groups stay meanwhile.
  const coir::http::ProxyHold hold = proxy_->hold();
  struct Both {
    const coir::http::ProxyHold& hold;
    const coir::http::GatewayGroups& others;
  } both{hold, others};
  const auto at = [](void* opaque, std::size_t index) noexcept {
    const auto& all = *static_cast<const Both*>(opaque);
    if (index >= all.hold.size()) return all.others.at(all.others.context, index - all.hold.size());
    const coir::http::RouteLine& line = all.hold.line(index);
    return coir::http::GatewayGroup{.name = line.prefix, .host = line.hosts, .upstreams = &all.hold.upstreams(index)};
  };
  write_gateway_metrics(text, &proxy_->forwarder(), {hold.size() + others.count, at, &both});
}

bool Gateway::serve(coir::http::Exchange& exchange) noexcept {
  return proxy_->serve(exchange);
}

#else

bool apply_gateway(int chosen, const char*, Options&) noexcept {
  return lacks(name_of(chosen), "COIR_PROXY", "build it with -DCOIR_PROXY=ON");
}

#endif
