#include "socket/own_address.h"

#include <netinet/in.h>
#include <unistd.h>

#include <string_view>

#include "socket/kernel.h"

namespace coir {
namespace {

// The text of an address has one form, whatever else a socket's address tells: an IPv6 address names its link too.
bool same_host(const Address& a, const Address& b) noexcept {
  char texts[2][Address::kMaxText];
  return a.with_port(0).format(texts[0]) == b.with_port(0).format(texts[1]);
}

bool is_unspecified(const Address& address) noexcept {
  if (address.family() == Address::Family::ipv4) {
    return reinterpret_cast<const sockaddr_in*>(address.get())->sin_addr.s_addr == INADDR_ANY;
  }
  return IN6_IS_ADDR_UNSPECIFIED(&reinterpret_cast<const sockaddr_in6*>(address.get())->sin6_addr);
}

}  // namespace

bool is_own_address(const Address& address, const TcpStream& by) noexcept {
  if (address.family() == Address::Family::unix_path || is_unspecified(address)) return false;
  const auto local = by.local_address();
  if (local && local->family() != Address::Family::unix_path && same_host(address, *local)) return true;
  const int fd = kernel::datagram_socket(address.get()->sa_family);
  if (fd < 0) return false;
  const Address any_port = address.with_port(0);
  const bool own = kernel::bind(fd, any_port.get(), any_port.length()) == 0;
  ::close(fd);
  return own;
}

}  // namespace coir
