#include "client/proxies.h"

#include <coir/format.h>
#include <coir/http/wire/query.h>
#include <coir/http/wire/request.h>
#include <coir/net/address.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>

#include "http/text/characters.h"

namespace coir::http {
namespace {

// HostBits is an address of IPv4 or IPv6 with its bits.
struct HostBits {
  unsigned char bytes[16] = {};
  unsigned size = 0;
};

std::optional<HostBits> bits_of(std::string_view text) noexcept {
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  char with_port[64];
  const bool is_v6 = text.find(':') != text.npos;
  Formatter out(with_port);
  out.add(is_v6 ? "[" : "", text, is_v6 ? "]:0" : ":0");
  if (text.empty() || text.front() == '*' || !out.fits()) return std::nullopt;
  const auto address = Address::parse(out.text());
  if (!address || address->is_any()) return std::nullopt;
  HostBits ip;
  if (address->family() == Address::Family::ipv4) {
    ip.size = 4;
    memcpy(ip.bytes, &reinterpret_cast<const sockaddr_in*>(address->get())->sin_addr, ip.size);
  } else if (address->family() == Address::Family::ipv6) {
    ip.size = 16;
    memcpy(ip.bytes, &reinterpret_cast<const sockaddr_in6*>(address->get())->sin6_addr, ip.size);
  } else {
    return std::nullopt;
  }
  return ip;
}

// network_holds tells whether a network, "10.0.0.0/8", or an address, holds an address.
bool network_holds(std::string_view entry, const HostBits& ip) noexcept {
  const std::size_t slash = std::min(entry.find('/'), entry.size());
  const auto network = bits_of(first(entry, slash));
  if (!network || network->size != ip.size) return false;
  unsigned bits = 8 * ip.size;
  if (slash < entry.size()) {
    const auto given = parse_integer(after(entry, slash + 1));
    if (!given || *given < 0 || *given > static_cast<std::int64_t>(bits)) return false;
    bits = static_cast<unsigned>(*given);
  }
  if (memcmp(network->bytes, ip.bytes, bits / 8) != 0) return false;
  return bits % 8 == 0 || ((network->bytes[bits / 8] ^ ip.bytes[bits / 8]) >> (8 - bits % 8)) == 0;
}

// names tells whether an entry, without port, is the host, a domain around it, or where the host is an address a network
// around that. An address lies in no domain: "0.0.1" is not around 127.0.0.1.
bool names(std::string_view entry, std::string_view host) noexcept {
  if (const auto bits = bits_of(host)) return network_holds(entry, *bits);
  if (entry.starts_with('.')) entry.remove_prefix(1);
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
