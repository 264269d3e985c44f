#include "proxy/routes/route_servers.h"

#include <coir/http/url.h>
#include <coir/net/address.h>
#include <coir/net/stream.h>

#include <algorithm>

namespace coir::http {
namespace {

constexpr const char* kForm = "such as http://127.0.0.1:8081 or unix:/run/app.sock";

}  // namespace

std::string_view next_item(std::string_view& list) noexcept {
  const std::string_view item = list.substr(0, list.find(','));
  list.remove_prefix(std::min(item.size() + 1, list.size()));
  return item;
}

std::string_view path_of(std::string_view url) noexcept {
  if (url.starts_with("unix:")) return {};
  const std::size_t host = url.find("://") + 3;
  const std::size_t slash = url.find('/', host);
  return slash == url.npos ? std::string_view() : url.substr(slash);
}

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

bool lies_below(std::string_view path, std::string_view prefix) noexcept {
  return path.starts_with(prefix) &&
         (prefix.ends_with('/') || path.size() == prefix.size() || path[prefix.size()] == '/');
}

std::expected<bool, RouteFault> check_servers(std::string_view prefix, std::string_view urls) noexcept {
  const auto fault = [](std::string_view word, const char* what, const char* cure) {
    return std::unexpected(RouteFault{word, what, cure});
  };
  if (!prefix.starts_with('/') || climbs(prefix) || prefix.find_first_of("?#") != prefix.npos)
    return fault(prefix, "the prefix is no path", "such as /api");
  bool secure = false;
  std::size_t count = 0;
  std::string_view rest = urls, first;
  do {
    const std::string_view url = next_item(rest);
    if (first.empty()) first = url;
    if (++count > Upstreams::kMost) return fault(prefix, "more than 16 servers", "name fewer");
    if (url.starts_with("unix:")) {
      if (!Address::parse(url)) return fault(url, "no path of a Unix socket", "such as unix:/run/app.sock");
      if (!path_of(first).empty()) return fault(url, "all servers of a prefix have the same path", "unix: has none");
      continue;
    }
    const auto parsed = parse_url(url);
    if (!parsed) return fault(url, "no address of http, https or a Unix socket", kForm);
    if (parsed->user_info.data() != nullptr || parsed->query.data() != nullptr)
      return fault(url, "a user or a query is not passed on", "leave it out");
    if (parsed->secure && !kTls) return fault(url, "this build has no TLS", "ask by http");
    if (path_of(url) != path_of(first))
      return fault(url, "all servers of a prefix have the same path", "make two routes of them");
    secure = secure || parsed->secure;
  } while (!rest.empty());
  return secure;
}

}  // namespace coir::http
