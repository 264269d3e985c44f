#include "own_names.h"

#include <arpa/inet.h>
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
      const in_addr& address = reinterpret_cast<const sockaddr_in*>(each->ifa_addr)->sin_addr;
      if (is_of_use(address)) add(AF_INET, &address);
    } else if (each->ifa_addr->sa_family == AF_INET6) {
      const in6_addr& address = reinterpret_cast<const sockaddr_in6*>(each->ifa_addr)->sin6_addr;
      if (is_of_use(address)) add(AF_INET6, &address);
    }
  }
  ::freeifaddrs(all);
}

// add leaves out what is there already: two interfaces may share an address.
void OwnNames::add(int family, const void* address) noexcept {
  if (count_ == kOthers + kMostAddresses) return;
  char(&text)[INET6_ADDRSTRLEN] = text_[count_ - kOthers];
  if (::inet_ntop(family, address, text, sizeof text) == nullptr) return;
  if (std::ranges::find(names_, names_ + count_, std::string_view(text)) == names_ + count_) names_[count_++] = text;
}
