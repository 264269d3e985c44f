#include "gateway.h"

#include "complaint.h"
#include "option_table.h"

#include <coir/program.h>
#if COIRD_GATEWAY
#include <coir/file.h>
#include <coir/format.h>
#include <coir/http/accounts.h>
#include <coir/http/url.h>

#include <algorithm>
#endif

#if COIRD_GATEWAY

namespace {

constexpr const char* kSeeHelp = "coird --help lists the options";

using coir::http::RouteLine;
using coir::http::Upstreams;
using coir::http::UpstreamServer;

// next_url takes the next of "URL,URL" off `text`.
std::string_view next_url(std::string_view& text) noexcept {
  const std::string_view url = text.substr(0, text.find(','));
  text.remove_prefix(std::min(url.size() + 1, text.size()));
  return url;
}

// path_of is what stands behind a URL's host; empty where nothing does.
std::string_view path_of(std::string_view url) noexcept {
  if (url.starts_with("unix:")) return {};
  const std::size_t host = url.find("://") + 3;
  const std::size_t slash = url.find('/', host);
  return slash == url.npos ? std::string_view() : url.substr(slash);
}

// climbs tells whether a path has a segment that is "." or "..", encoded or not: the server behind would take it for
// another path than the one that was chosen by its prefix.
bool climbs(std::string_view path) noexcept {
  while (!path.empty()) {
    path.remove_prefix(1);
    std::size_t dots = 0;
    bool others = false;
    while (!path.empty() && path.front() != '/') {
      if (path.front() == '.') {
        ++dots;
        path.remove_prefix(1);
      } else if (path.starts_with("%2e") || path.starts_with("%2E")) {
        ++dots;
        path.remove_prefix(3);
      } else {
        others = true;
        path.remove_prefix(1);
      }
    }
    if (!others && (dots == 1 || dots == 2)) return true;
  }
  return false;
}

// lies_below tells whether a path is the prefix itself or continues it at a slash.
bool lies_below(std::string_view path, std::string_view prefix) noexcept {
  return path.starts_with(prefix) &&
         (prefix.ends_with('/') || path.size() == prefix.size() || path[prefix.size()] == '/');
}

#if COIR_TLS
constexpr const char* kAuthorities[] = {"/etc/ssl/certs/ca-certificates.crt", "/etc/ssl/cert.pem"};
constexpr std::size_t kMostAuthorities = 1024 * 1024;

// load_trust reads whom servers behind https have to be certified by.
coir::TlsContext load_trust(const char* named) noexcept {
  for (const char* const path : {named != nullptr ? named : kAuthorities[0], kAuthorities[1]}) {
    auto file = coir::File::open(path);
    if (!file && named == nullptr) continue;
    const auto bundle = file ? file->read_all(coir::account::tls, kMostAuthorities) : std::unexpected(file.error());
    if (!bundle) {
      complain("--proxy-ca names a file of certificates", {"--proxy-ca '", path, "': ", describe(bundle.error())});
      return {};
    }
    auto context = coir::TlsContext::client({.authorities = bundle->text()});
    if (context) return std::move(*context);
    complain("--proxy-ca names a file of certificates", {"'", path, "': ", coir::describe_tls(context.error())});
    return {};
  }
  complain("--proxy-ca names a file of certificates",
           {"--proxy with https: this machine has no certificates to trust"});
  return {};
}
#endif

constexpr const char* kForm = "such as /api=http://127.0.0.1:8081";

// Origin is where a route was said: three words that begin the line about it.
struct Origin {
  Word first, second, third;
  bool wrong(const char* cure, std::initializer_list<Word> what) const noexcept {
    Word words[8] = {first, second, third, "", "", "", "", ""};
    std::ranges::copy(what, words + 3);
    return complain(cure, {words[0], words[1], words[2], ": ", words[3], words[4], words[5]});
  }
};

// check_servers tells whether a route's prefix and servers can be used; `tls` is set where one is asked by https.
bool check_servers(const Origin& origin, std::string_view prefix, std::string_view urls, bool& tls) noexcept {
  if (climbs(prefix) || prefix.find_first_of("?#") != prefix.npos)
    return origin.wrong(kForm, {"the prefix is no path"});
  std::size_t count = 0;
  std::string_view rest = urls;
  do {
    const std::string_view url = next_url(rest);
    const auto parsed = coir::http::parse_url(url);
    if (!url.starts_with("unix:") && !parsed)
      return origin.wrong(kForm, {"'", url, "' is no address of http, https or a Unix socket"});
    if (parsed && (parsed->user_info.data() != nullptr || parsed->query.data() != nullptr))
      return origin.wrong(kForm, {"a user or a query is not passed on"});
    if (parsed && parsed->secure && !coir::kTls) return origin.wrong(kSeeHelp, {"this build has no TLS"});
    if (parsed && path_of(url) != path_of(urls.substr(0, urls.find(','))))
      return origin.wrong(kSeeHelp, {"all servers of a prefix have the same path"});
    if (parsed && parsed->secure) tls = true;
    if (++count > Upstreams::kMost) return origin.wrong(kSeeHelp, {"more than ", Upstreams::kMost, " servers"});
  } while (!rest.empty());
  return true;
}

// add_proxied takes "PREFIX=URL[,URL...]" of --proxy.
bool add_proxied(const char* text, Options& options) noexcept {
  const Origin origin{"--proxy '", text, "'"};
  if (options.proxied_count == Options::kMaxProxied)
    return origin.wrong(kSeeHelp, {"more than ", Options::kMaxProxied});
  const std::string_view all = text;
  const std::size_t equals = all.find('=');
  if (equals == all.npos || all.front() != '/') return origin.wrong(kForm, {"not PREFIX=URL"});
  Options::Proxied made{.prefix = all.substr(0, equals), .urls = all.substr(equals + 1)};
  for (const auto& before : std::span(options.proxied).first(options.proxied_count)) {
    if (before.prefix == made.prefix) return origin.wrong(kSeeHelp, {"this prefix was given before"});
  }
  if (!check_servers(origin, made.prefix, made.urls, options.proxies_tls)) return false;
  options.proxied[options.proxied_count++] = made;
  return true;
}

}  // namespace

bool apply_gateway(int chosen, const char* text, Options& options) noexcept {
  if (chosen == kProxy) return add_proxied(text, options);
  (chosen == kRoutes ? options.routes : options.proxy_authorities) = text;
  return true;
}

bool Gateway::read_routes(const char* path, bool& tls) noexcept {
  constexpr const char* kCure = "--routes names a file of routes; coird's README.md tells of its lines";
  const auto file = coir::File::open(path);
  if (!file) return complain(kCure, {path, ": ", file.error()});
  auto text = file->read_all(coir::account::http, kMostText);
  if (!text) return complain(kCure, {path, ": ", text.error()});
  text_.emplace(std::move(*text));
  std::size_t number = 0;
  for (std::string_view rest = text_->text(); !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    const Origin origin{path, ":", ++number};
    RouteLine made;
    const auto parsed = parse_route_line(line, made);
    if (!parsed) return origin.wrong(parsed.error().cure, {parsed.error().word, ": ", parsed.error().what});
    if (!*parsed) continue;
    if (count_ == std::size(routes_))
      return origin.wrong("join some of them", {"more than ", std::size(routes_), " routes, --proxy's among them"});
    for (const Route& before : std::span(routes_).first(count_)) {
      if (before.line.prefix == made.prefix && before.line.hosts == made.hosts)
        return origin.wrong("one route for a prefix and a host", {made.prefix, ": this prefix was given before"});
    }
    if (!check_servers(origin, made.prefix, made.urls, tls)) return false;
    routes_[count_++].line = made;
  }
  return true;
}

bool Gateway::open(const Options& options) noexcept {
  bool tls = options.proxies_tls;
  for (const auto& proxied : std::span(options.proxied).first(options.proxied_count)) {
    Route& route = routes_[count_++];
    route.line.prefix = proxied.prefix;
    route.line.urls = proxied.urls;
  }
  if (options.routes != nullptr && !read_routes(options.routes, tls)) return false;
  coir::http::UpstreamOptions how;
#if COIR_TLS
  if (tls) {
    trust_ = load_trust(options.proxy_authorities);
    if (!trust_) return false;
    how.tls = &trust_;
  }
#endif
  auto forwarder = coir::http::Forwarder::create();
  if (!forwarder) return complain(kSeeHelp, {"--proxy: ", describe(forwarder.error())});
  forwarder_.emplace(std::move(*forwarder));
  for (Route& route : std::span(routes_).first(count_)) {
    const RouteLine& line = route.line;
    UpstreamServer servers[Upstreams::kMost];
    std::size_t count = 0;
    for (std::string_view rest = line.urls; !rest.empty() && count < std::size(servers); ++count) {
      servers[count].url = next_url(rest);
      if (line.weights[count] != 0) servers[count].weight = line.weights[count];
    }
    how.balance = line.balance;
    auto made = Upstreams::create(std::span(servers).first(count), how);
    if (!made)
      return complain(kSeeHelp,
                      {"what is passed on, '", line.prefix, "' to ", line.urls, ": ", describe(made.error())});
    route.base = path_of(line.urls.substr(0, line.urls.find(',')));
    route.upstreams.emplace(std::move(*made));
  }
  return true;
}

bool Gateway::serve(coir::http::Exchange& exchange) noexcept {
  const coir::http::Request& request = exchange.request();
  Route* best = nullptr;
  for (Route& each : std::span(routes_).first(count_)) {
    if (!lies_below(request.path, each.line.prefix) || !each.line.admits(request.authority)) continue;
    // A route that names the host comes before those for anybody, then the longest prefix.
    const bool names = !each.line.hosts.empty(), best_names = best != nullptr && !best->line.hosts.empty();
    if (best == nullptr || (names != best_names ? names : each.line.prefix.size() > best->line.prefix.size()))
      best = &each;
  }
  if (best == nullptr) return false;
  if (climbs(request.path)) return exchange.respond_status(400), true;
  const RouteLine& line = best->line;
  const coir::http::ForwardRules rules{.host = line.host,
                                       .request_lines = line.request.lines(),
                                       .request_drops = line.request.drops(),
                                       .response_lines = line.response.lines(),
                                       .response_drops = line.response.drops()};
  auto& group = best->upstreams->group();
  if (best->base.empty()) return forwarder_->forward(exchange, group, rules), true;
  // The base takes the prefix's place, with one slash between it and the rest.
  std::string_view rest = request.path.substr(line.prefix.size()), base = best->base;
  if (base.ends_with('/') && rest.starts_with('/')) base.remove_suffix(1);
  const bool joins = !base.ends_with('/') && !rest.empty() && !rest.starts_with('/');
  coir::Formatter target(exchange.path_memory());
  target.add(base, joins ? "/" : "", rest);
  if (request.query.data() != nullptr) target.add("?", request.query);
  if (!target.fits()) return exchange.respond_status(414), true;
  return forwarder_->forward(exchange, group, rules, target.text()), true;
}

#else

bool apply_gateway(int chosen, const char*, Options&) noexcept {
  return lacks(name_of(chosen), "COIR_PROXY", "build it with -DCOIR_PROXY=ON");
}

#endif
