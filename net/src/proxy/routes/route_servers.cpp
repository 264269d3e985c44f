#include "proxy/routes/route_servers.h"

#include <coir/http/wire/url.h>
#include <coir/net/address.h>
#include <coir/net/stream.h>

#include <algorithm>

#include "http/text/characters.h"

namespace coir::http {
namespace {

constexpr const char* kForm = "such as http://127.0.0.1:8081 or unix:/run/app.sock";

// PathBytes is the bytes of a path as a server may see them: decoded once, and a run of slashes as one.
class PathBytes {
 public:
  explicit PathBytes(std::string_view path) noexcept : rest_(path) {}

  // next is -1 at the end, and where an escape is malformed.
  int next() noexcept {
    while (!rest_.empty()) {
      std::string_view behind = rest_;
      const int byte = take_decoded(behind);
      if (byte < 0) return -1;
      rest_ = behind;
      if (byte == '/' && was_slash_) continue;
      was_slash_ = byte == '/';
      return byte;
    }
    return -1;
  }
  std::string_view rest() const noexcept { return rest_; }

 private:
  std::string_view rest_;
  bool was_slash_ = false;
};

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
  std::size_t dots = 0;
  bool others = false;
  const auto is_dots = [&] { return !others && (dots == 1 || dots == 2); };
  while (!path.empty()) {
    const int byte = take_decoded(path);
    if (byte < 0) return true;
    if (byte == '/' || byte == '\\' || byte == ';') {
      if (is_dots()) return true;
      dots = 0;
      others = false;
    } else if (byte == '.') {
      ++dots;
    } else {
      others = true;
    }
  }
  return is_dots();
}

std::optional<std::string_view> rest_below(std::string_view path, std::string_view prefix) noexcept {
  PathBytes wanted(prefix), there(path);
  int last = '/';
  for (int byte; (byte = wanted.next()) >= 0; last = byte) {
    if (there.next() != byte) return std::nullopt;
  }
  const std::string_view rest = there.rest();
  const int next = there.next();
  if (last != '/' && next >= 0 && next != '/') return std::nullopt;
  return rest;
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
    if (++count > UpstreamServer::kMost) return fault(prefix, "more than 16 servers", "name fewer");
    if (url.starts_with("unix:")) {
      if (!Address::parse(url)) return fault(url, "not the path of a Unix socket", "such as unix:/run/app.sock");
      if (!path_of(first).empty())
        return fault(url, "the servers of a prefix must have the same path", "a Unix socket has no path");
      continue;
    }
    const auto parsed = parse_url(url);
    if (!parsed) return fault(url, "no address of http, https or a Unix socket", kForm);
    if (parsed->user_info.data() != nullptr || parsed->query.data() != nullptr)
      return fault(url, "a user or a query is not passed on", "leave it out");
    if (parsed->secure && !kTls) return fault(url, "this build has no TLS", "use http");
    if (path_of(url) != path_of(first))
      return fault(url, "the servers of a prefix must have the same path", "make two routes");
    secure = secure || parsed->secure;
  } while (!rest.empty());
  return secure;
}

}  // namespace coir::http
