#include "client/proxies.h"

#include <coir/http/percent.h>
#include <coir/http/request.h>
#include <stdlib.h>
#include <string.h>

#include "http/message/characters.h"

namespace coir::http {
namespace {

// names tells whether an entry, without port, is the host or a domain around it.
bool names(std::string_view entry, std::string_view host) noexcept {
  if (entry.starts_with('.')) entry.remove_prefix(1);
  if (entry.starts_with('[') && entry.ends_with(']')) entry = entry.substr(1, entry.size() - 2);
  if (entry.empty() || entry.size() > host.size()) return false;
  const std::size_t before = host.size() - entry.size();
  return equals_ignoring_case(after(host, before), entry) && (before == 0 || host[before - 1] == '.');
}

}  // namespace

void Proxies::keep(std::string_view& where, const char* lower, const char* upper) noexcept {
  const char* value = getenv(lower);
  if (value == nullptr && upper != nullptr) value = getenv(upper);
  if (value == nullptr) return;
  const std::size_t size = strlen(value);
  if (size > sizeof texts_ - used_) {
    // No proxy has this name, so that nothing goes past the one that was meant.
    if (&where == &none) plain = secure = "?";
    where = "?";
    return;
  }
  memcpy(texts_ + used_, value, size);
  where = {texts_ + used_, size};
  used_ += size;
}

void Proxies::read_environment() noexcept {
  // A CGI program's HTTP_PROXY is the request's field `Proxy`, which anybody may send.
  const bool is_cgi = getenv("REQUEST_METHOD") != nullptr;
  keep(plain, "http_proxy", is_cgi ? nullptr : "HTTP_PROXY");
  keep(secure, "https_proxy", "HTTPS_PROXY");
  keep(none, "no_proxy", "NO_PROXY");
}

std::expected<std::optional<Url>, Error> Proxies::choose(const Url& url) const noexcept {
  const std::string_view text = url.secure ? secure : plain;
  if (text.empty() || is_excepted(none, url.host, url.port)) return std::nullopt;
  const auto proxy = text.find("://") != text.npos ? parse_url(text) : parse_authority(text);
  if (!proxy) return std::unexpected(proxy.error());
  if (proxy->secure) return std::unexpected(Error{ErrorCode::unsupported});
  return *proxy;
}

bool is_excepted(std::string_view list, std::string_view host, std::uint16_t port) noexcept {
  while (!list.empty()) {
    const std::size_t end = std::min(list.find_first_of(", \t"), list.size());
    std::string_view entry = first(list, end);
    list.remove_prefix(std::min(end + 1, list.size()));
    if (entry == "*") return true;
    if (names(entry, host)) return true;
    // The last colon parts a port, unless it belongs to an address of IPv6.
    const std::size_t colon = entry.rfind(':');
    if (colon == entry.npos || (entry.find(':') != colon && entry[colon - 1] != ']')) continue;
    const auto wanted = parse_integer(after(entry, colon + 1));
    if (wanted && *wanted == port && names(first(entry, colon), host)) return true;
  }
  return false;
}

}  // namespace coir::http
