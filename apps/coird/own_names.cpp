#include "own_names.h"

#include <coir/net/address.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>

namespace {

constexpr std::size_t kOthers = 4;  // than addresses of interfaces

bool is_of_use(const in_addr& address) noexcept {
  const in_addr_t host = ntohl(address.s_addr);
  return host >> 24 != IN_LOOPBACKNET && host != INADDR_ANY;
}

bool is_of_use(const in6_addr& address) noexcept {
  return !IN6_IS_ADDR_LOOPBACK(&address) && !IN6_IS_ADDR_LINKLOCAL(&address) && !IN6_IS_ADDR_UNSPECIFIED(&address);
}

}  // namespace

OwnNames::OwnNames() noexcept {
  if (::gethostname(host_, sizeof host_ - 1) != 0 || host_[0] == '\0') strcpy(host_, "localhost");
  for (const char* name : {static_cast<const char*>(host_), "localhost", "127.0.0.1", "::1"}) names_[count_++] = name;
  add_addresses();
}

void OwnNames::add_addresses() noexcept {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return;
  for (const ifaddrs* each = all; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || (each->ifa_flags & IFF_UP) == 0) continue;
    if (each->ifa_addr->sa_family == AF_INET) {
      const auto& in = *reinterpret_cast<const sockaddr_in*>(each->ifa_addr);
      if (is_of_use(in.sin_addr)) add(coir::Address::from_sockaddr(each->ifa_addr, sizeof in));
    } else if (each->ifa_addr->sa_family == AF_INET6) {
      const auto& in6 = *reinterpret_cast<const sockaddr_in6*>(each->ifa_addr);
      if (is_of_use(in6.sin6_addr)) add(coir::Address::from_sockaddr(each->ifa_addr, sizeof in6));
    }
  }
  ::freeifaddrs(all);
}

// add leaves out what is there already: two interfaces may share an address.
void OwnNames::add(const coir::Address& address) noexcept {
  if (count_ == kOthers + kMostAddresses) return;
  // As Address writes it, for inet_ntop brings 17 KB of printf with it: "192.0.2.1:0", "[2001:db8::1]:0".
  std::string_view text = address.format(text_[count_ - kOthers]);
  text = text.substr(0, text.rfind(':'));
  if (text.starts_with('[')) text = text.substr(1, text.size() - 2);
  if (std::ranges::find(names_, names_ + count_, text) == names_ + count_) names_[count_++] = text;
}
