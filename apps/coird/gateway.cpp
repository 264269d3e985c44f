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

// add_proxied takes "PREFIX=URL[,URL...]" of --proxy.
bool add_proxied(const char* text, Options& options) noexcept {
  constexpr const char* kForm = "such as /api=http://127.0.0.1:8081";
  if (options.proxied_count == Options::kMaxProxied) {
    return complain(kSeeHelp, {"--proxy '", text, "': more than ", Options::kMaxProxied});
  }
  const std::string_view all = text;
  const std::size_t equals = all.find('=');
  if (equals == all.npos || all.front() != '/') return complain(kForm, {"--proxy '", text, "': not PREFIX=URL"});
  Options::Proxied made{.prefix = all.substr(0, equals), .urls = all.substr(equals + 1)};
  if (climbs(made.prefix) || made.prefix.find_first_of("?#") != made.prefix.npos) {
    return complain(kForm, {"--proxy '", text, "': the prefix is no path"});
  }
  for (const auto& before : std::span(options.proxied).first(options.proxied_count)) {
    if (before.prefix == made.prefix) return complain(kSeeHelp, {"--proxy '", text, "': this prefix was given before"});
  }
  std::size_t count = 0;
  std::string_view rest = made.urls;
  do {
    const std::string_view url = next_url(rest);
    const auto parsed = coir::http::parse_url(url);
    if (!url.starts_with("unix:") && !parsed) {
      return complain(kForm, {"--proxy '", text, "': '", url, "' is no address of http, https or a Unix socket"});
    }
    if (parsed && (parsed->user_info.data() != nullptr || parsed->query.data() != nullptr)) {
      return complain(kForm, {"--proxy '", text, "': a user or a query is not passed on"});
    }
    if (parsed && parsed->secure && !coir::kTls)
      return complain(kSeeHelp, {"--proxy '", text, "': this build has no TLS"});
    if (parsed && path_of(url) != path_of(made.urls.substr(0, made.urls.find(',')))) {
      return complain(kSeeHelp, {"--proxy '", text, "': all servers of a prefix have the same path"});
    }
    if (parsed && parsed->secure) options.proxies_tls = true;
    if (++count > Upstreams::kMost)
      return complain(kSeeHelp, {"--proxy '", text, "': more than ", Upstreams::kMost, " servers"});
  } while (!rest.empty());
  options.proxied[options.proxied_count++] = made;
  return true;
}

}  // namespace

bool apply_gateway(int chosen, const char* text, Options& options) noexcept {
  if (chosen == kProxy) return add_proxied(text, options);
  options.proxy_authorities = text;
  return true;
}

bool Gateway::open(const Options& options) noexcept {
  coir::http::UpstreamOptions how;
#if COIR_TLS
  if (options.proxies_tls) {
    trust_ = load_trust(options.proxy_authorities);
    if (!trust_) return false;
    how.tls = &trust_;
  }
#endif
  auto forwarder = coir::http::Forwarder::create();
  if (!forwarder) return complain(kSeeHelp, {"--proxy: ", describe(forwarder.error())});
  forwarder_.emplace(std::move(*forwarder));
  for (const auto& proxied : std::span(options.proxied).first(options.proxied_count)) {
    UpstreamServer servers[Upstreams::kMost];
    std::size_t count = 0;
    for (std::string_view rest = proxied.urls; !rest.empty() && count < std::size(servers);) {
      servers[count++] = {.url = next_url(rest)};
    }
    auto made = Upstreams::create(std::span(servers).first(count), how);
    if (!made)
      return complain(kSeeHelp, {"--proxy '", proxied.prefix, "=", proxied.urls, "': ", describe(made.error())});
    Route& route = routes_[count_++];
    route.prefix = proxied.prefix;
    route.base = path_of(proxied.urls.substr(0, proxied.urls.find(',')));
    route.replaces = !route.base.empty();
    route.upstreams.emplace(std::move(*made));
  }
  return true;
}

bool Gateway::serve(coir::http::Exchange& exchange) noexcept {
  const coir::http::Request& request = exchange.request();
  Route* best = nullptr;
  for (Route& each : std::span(routes_).first(count_)) {
    if (lies_below(request.path, each.prefix) && (best == nullptr || each.prefix.size() > best->prefix.size()))
      best = &each;
  }
  if (best == nullptr) return false;
  if (climbs(request.path)) return exchange.respond_status(400), true;
  const coir::http::ForwardRules rules;
  auto& group = best->upstreams->group();
  if (!best->replaces) return forwarder_->forward(exchange, group, rules), true;
  // The base takes the prefix's place, with one slash between it and the rest.
  std::string_view rest = request.path.substr(best->prefix.size()), base = best->base;
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
  if constexpr (!coir::kFibers) {
    return complain("a build with fibers has it", {"--", name_of(chosen), ": this coird was built without fibers"});
  }
  return complain("build it with -DCOIR_PROXY=ON",
                  {"--", name_of(chosen), ": this coird was built without COIR_PROXY"});
}

#endif
