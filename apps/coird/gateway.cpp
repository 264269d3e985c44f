#include "gateway.h"

#include "complaint.h"
#include "options/take.h"
#include "upstream_trust.h"

#include <coir/program.h>
#if COIRD_GATEWAY
#include <coir/file.h>
#include <coir/format.h>
#include <coir/http/server.h>

#include <algorithm>
#include <array>
#endif

#if COIRD_GATEWAY

namespace {

constexpr const char* kForm = "such as /api=http://127.0.0.1:8081";
constexpr std::size_t kMostText = 64 * 1024;  // of the file of routes

using coir::http::ProxyTable;
using RouteLines = std::array<std::uint16_t, ProxyTable::kMost>;

// is_url tells the servers of a section from its other keys.
bool is_url(const Setting& key) noexcept {
  return std::string_view(key.text).starts_with("url=");
}

// RouteText is what an option, or a section of the file, says as a line of a file of routes.
class RouteText {
 public:
  // Bits of `without` are keys that are left out.
  explicit RouteText(const Options::Proxied& route, std::uint64_t without = 0) noexcept : route_(route) {
    text_.add(route.prefix, " ", route.urls);
    for (std::size_t i = 0; i < route.keys.size(); ++i) {
      if (!is_url(route.keys[i]) && !has_bit(without, i)) text_.add(" ", route.keys[i].text);
    }
  }

  std::expected<bool, coir::http::RouteFault> add_to(ProxyTable& table) const noexcept {
    if (!text_.fits()) return std::unexpected(coir::http::RouteFault{route_.prefix, "too long", "name it in --routes"});
    return table.add(text_.text());
  }

  // key_of is the number of the section's key that a word of the line comes from; none: prefix or servers.
  std::optional<std::size_t> key_of(std::string_view word, std::uint64_t without) const noexcept {
    for (std::size_t i = 0; i < route_.keys.size(); ++i) {
      if (!is_url(route_.keys[i]) && !has_bit(without, i) && word == route_.keys[i].text) return i;
    }
    return std::nullopt;
  }

  static bool has_bit(std::uint64_t bits, std::size_t at) noexcept { return at < 64 && (bits >> at & 1) != 0; }

 private:
  const Options::Proxied& route_;
  char room_[ProxyTable::kMostLine];
  coir::Formatter text_{room_};
};

bool is_known(std::string_view prefix, const Options& options) noexcept {
  const auto proxied = std::span(options.proxied).first(options.proxied_count);
  return std::ranges::any_of(proxied, [prefix](const auto& before) { return before.prefix == prefix; });
}

// add_route adds what `setting` says, once it is in order.
bool add_route(const Setting& setting, const Options::Proxied& made, Options& options) noexcept {
  if (options.proxied_count == Options::kMaxProxied) return setting.wrong({"more than ", Options::kMaxProxied});
  if (made.keys.empty() && is_known(made.prefix, options)) return setting.wrong({"this prefix was given before"});
  // A line has one fault told. Without the key that has it the next is told.
  for (std::uint64_t told = 0;;) {
    auto table = ProxyTable::create();
    if (!table) return setting.wrong({table.error()});
    const RouteText text(made, told);
    const auto added = text.add_to(*table);
    if (added && told != 0) return false;
    if (added) break;
    const auto at = text.key_of(added.error().word, told);
    (at ? made.keys[*at] : setting).wrong(added.error().cure, {added.error().word, ": ", added.error().what});
    if (!at || *at >= 64) return false;
    told |= std::uint64_t{1} << *at;
  }
  options.proxied[options.proxied_count++] = made;
  return true;
}

// add_file adds the routes of a file and notes the line of each. An error is reported with its line; `stays` says what becomes
// of the present routes.
bool add_file(ProxyTable& table, RouteLines& lines, const char* path, const char* stays) noexcept {
  constexpr const char* kCure = "--routes names a file of routes; coird's README.md explains its lines";
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
    } else if (*added) {
      lines[table.size() - 1] = static_cast<std::uint16_t>(number);
    }
  }
  return true;
}

// read makes the table of the options.
std::optional<ProxyTable> read(const Options& options, const char* stays, RouteLines& lines) noexcept {
  auto table = ProxyTable::create();
  if (!table) return complain(kSeeHelp, {"--routes: ", describe(table.error()), stays}), std::nullopt;
  for (const auto& proxied : std::span(options.proxied).first(options.proxied_count)) {
    const RouteText text(proxied);
    if (const auto added = text.add_to(*table); !added) {
      // Each is in order by itself: of two sections prefix and hosts are the same.
      const coir::http::RouteFault& fault = added.error();
      return complain(fault.cure, {"route ", proxied.prefix, ": ", fault.word, ": ", fault.what, stays}), std::nullopt;
    }
  }
  if (options.routes != nullptr && !add_file(*table, lines, options.routes, stays)) return std::nullopt;
  return std::move(*table);
}

}  // namespace

bool take_proxy(const Setting& setting, Options& options) noexcept {
  const std::string_view all = setting.text;
  const std::size_t equals = all.find('=');
  if (equals == all.npos || all.front() != '/' || all.find_first_of(" \t") != all.npos)
    return setting.wrong(kForm, {"not PREFIX=URL"});
  return add_route(setting, {.prefix = all.substr(0, equals), .urls = all.substr(equals + 1)}, options);
}

bool take_route(std::string_view prefix, std::span<const Setting> keys, Options& options) noexcept {
  bool good = true;
  std::string_view urls;
  for (const Setting& key : keys) {
    if (std::string_view(key.text).find_first_of(" \t") != std::string_view::npos) {
      good = key.wrong("leave it out", {"the value contains a blank"});
    } else if (is_url(key)) {
      if (!urls.empty()) good = key.wrong("name all servers in one url, with commas between them", {"a second url"});
      urls = std::string_view(key.text).substr(4);
    }
  }
  if (urls.empty()) return keys.front().wrong("such as url = http://127.0.0.1:8081", {"the section has no url"});
  return good && add_route(keys.front(), {.prefix = prefix, .urls = urls, .keys = keys}, options);
}

bool Gateway::open(const Options& options) noexcept {
  coir::http::ProxyOptions how{.on_change = tell_of_upstream};
#if COIR_TLS
  how.tls = &trust_;
#endif
#if COIRD_ROUTE_AUTH
  how.admits = [this](coir::http::Exchange& exchange, std::string_view path) { return auth_.admits(exchange, path); };
#endif
  proxy_.emplace(how);
  if (!proxy_->problem().empty()) return complain(kSeeHelp, {"--proxy: ", proxy_->problem()});
  return bool(apply(options, ""));
}

bool Gateway::reload(const Options& options) noexcept {
  const auto change = apply(options, "; the old routes stay");
  if (!change) return false;
  watch();
  say({"routes read again: ", change->kept, " kept, ", change->added, " new, ", change->removed, " gone"});
  return true;
}

std::optional<std::size_t> Gateway::planned_bytes(const Options& options) noexcept {
  RouteLines lines{};
  const auto table = read(options, "", lines);
  if (!table) return std::nullopt;
  std::size_t bytes = table->memory_bytes();
#if COIRD_ROUTE_AUTH
  bytes += RouteAuth::planned_bytes(*table);
#endif
  return bytes;
}

std::optional<coir::http::ProxyChange> Gateway::apply(const Options& options, const char* stays) noexcept {
  RouteLines lines{};
  auto table = read(options, stays, lines);
  if (!table) return std::nullopt;
#if COIR_TLS
  // The authorities stay as they were read first: groups that stay refer to them.
  if (table->secure() && !trust_ && !(trust_ = load_upstream_trust(options))) return std::nullopt;
#endif
#if COIRD_ROUTE_AUTH
  if (!auth_.load(*table, lines, options, *stays == '\0' ? "coird --help explains --routes" : stays + 2)) {
    return std::nullopt;
  }
#endif
  const auto changed = proxy_->apply(*table);
#if COIRD_ROUTE_AUTH
  if (changed) auth_.settle();
#endif
  if (changed) return *changed;
  if (changed.error().route >= table->size())
    return complain(kSeeHelp, {"--routes: ", describe(changed.error().error), stays}), std::nullopt;
  const coir::http::RouteLine& line = (*table)[changed.error().route];
  complain(kSeeHelp, {"route '", line.prefix, "' to ", line.urls, ": ", describe(changed.error().error), stays});
  return std::nullopt;
}

void tell_of_upstream(const coir::http::UpstreamNews& news) noexcept {
  using enum coir::LogLevel;
  static constinit coir::LogSource upstreams("upstreams", {.burst = 50, .spacing = std::chrono::milliseconds(500)});
  if (news.up) return say(upstreams, notice, {"upstream ", news.server, " is back"});
  say(upstreams, warning, {"upstream ", news.server, " is down: ", news.why});
}

void Gateway::watch() noexcept {
  if (const auto watched = proxy_->watch(); !watched) warn({"routes: not all servers are watched: ", watched.error()});
}

bool Gateway::serve(coir::http::Exchange& exchange) noexcept {
  return proxy_->serve(exchange);
}

#endif
