#include "proxy/routes/route_values.h"

#include <arpa/inet.h>
#include <coir/format.h>
#include <coir/http/proxy_table.h>
#include <netinet/in.h>
#include <string.h>

#include <charconv>
#include <system_error>

#include "http/text/characters.h"
#include "proxy/routes/route_servers.h"

namespace coir::http {
namespace {

// Ip is an address of either family as one of IPv6; IPv4's stand behind ::ffff:.
struct Ip {
  unsigned char bytes[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
};

std::optional<Ip> ip_of(const Address& address) noexcept {
  Ip ip;
  if (address.family() == Address::Family::ipv4) {
    memcpy(ip.bytes + 12, &reinterpret_cast<const sockaddr_in*>(address.get())->sin_addr, 4);
    return ip;
  }
  if (address.family() != Address::Family::ipv6) return std::nullopt;
  memcpy(ip.bytes, &reinterpret_cast<const sockaddr_in6*>(address.get())->sin6_addr, 16);
  return ip;
}

struct Network {
  Ip ip;
  unsigned bits = 128;
};

std::optional<Network> network_of(std::string_view text) noexcept {
  const std::size_t slash = text.find('/');
  const std::string_view name = text.substr(0, slash);
  const bool has_port = name.find(':') != name.npos && name.find(':') == name.rfind(':');
  const auto address = name.starts_with('[') || has_port ? std::nullopt : address_of(name);
  if (!address) return std::nullopt;
  const auto ip = ip_of(*address);
  if (!ip) return std::nullopt;
  Network network{.ip = *ip};
  if (slash == text.npos) return network;
  const unsigned most = address->family() == Address::Family::ipv4 ? 32 : 128;
  const auto bits = parse_number(text.substr(slash + 1), 0, most);
  if (!bits) return std::nullopt;
  network.bits = 128 - most + static_cast<unsigned>(*bits);
  return network;
}

bool holds(const Network& network, const Ip& ip) noexcept {
  const unsigned whole = network.bits / 8, rest = network.bits % 8;
  if (memcmp(network.ip.bytes, ip.bytes, whole) != 0) return false;
  return rest == 0 || ((network.ip.bytes[whole] ^ ip.bytes[whole]) >> (8 - rest)) == 0;
}

// last_item takes the last of "A, B" off `list`.
std::string_view last_item(std::string_view& list) noexcept {
  const std::size_t comma = list.rfind(',');
  const std::string_view item = trim(comma == list.npos ? list : list.substr(comma + 1));
  list = comma == list.npos ? std::string_view() : list.substr(0, comma);
  return item;
}

}  // namespace

std::optional<std::uint64_t> parse_number(std::string_view text, std::uint64_t least, std::uint64_t most) noexcept {
  std::uint64_t number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc() || end != text.data() + text.size() || number < least || number > most) return std::nullopt;
  return number;
}

std::optional<Address> address_of(std::string_view text) noexcept {
  if (text.empty() || text.front() == '*' || (text.front() == ':' && !text.starts_with("::"))) return std::nullopt;
  char with_port[64];
  const bool bracketed = text.front() == '[';
  const bool v6 = !bracketed && text.find(':') != text.rfind(':');
  const bool has_port = bracketed ? !text.ends_with(']') : !v6 && text.find(':') != text.npos;
  Formatter out(with_port);
  out.add(v6 ? "[" : "", text, v6 ? "]" : "", has_port ? "" : ":0");
  if (!out.fits()) return std::nullopt;
  const auto address = Address::parse(out.text());
  if (!address || address->family() == Address::Family::unix_path) return std::nullopt;
  return *address;
}

bool is_trust_list(std::string_view list) noexcept {
  std::size_t count = 0;
  while (!list.empty()) {
    const std::string_view item = next_item(list);
    if (++count > kMostTrusted || (item != "unix" && !network_of(item))) return false;
  }
  return count != 0;
}

bool is_trusted(std::string_view list, const Address& address) noexcept {
  const auto ip = ip_of(address);
  while (!list.empty()) {
    const std::string_view item = next_item(list);
    if (item == "unix") {
      if (!ip) return true;
    } else if (const auto network = network_of(item); network && ip && holds(*network, *ip)) {
      return true;
    }
  }
  return false;
}

Address client_behind(const Address& peer, std::string_view list, std::span<const Header> fields) noexcept {
  Address client = peer;
  if (list.empty() || !is_trusted(list, peer)) return client;
  constexpr int kMostSteps = 16;
  int steps = 0;
  for (std::size_t i = fields.size(); i != 0; --i) {
    const Header& field = fields[i - 1];
    if (!equals_ignoring_case(field.name, "X-Forwarded-For")) continue;
    for (std::string_view rest = field.value; !rest.empty();) {
      const auto named = address_of(last_item(rest));
      if (!named || ++steps > kMostSteps) return client;
      client = *named;
      if (!is_trusted(list, client)) return client;
    }
  }
  return client;
}

}  // namespace coir::http
