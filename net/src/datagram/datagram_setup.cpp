#include <coir/net/datagram.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "socket/kernel.h"
#include "socket/orphaned_path.h"

namespace coir {
namespace {

#if !defined(IPV6_MULTICAST_ALL)
constexpr int kIpv6MulticastAll = 29;  // Linux 4.20
#else
constexpr int kIpv6MulticastAll = IPV6_MULTICAST_ALL;
#endif

std::unexpected<Error> refused_by_kernel(int negative) noexcept {
  return std::unexpected(Error::from_errno(-negative));
}

std::unexpected<Error> membership_error(int number) noexcept {
  switch (number) {
    case ENODEV:
    case EADDRNOTAVAIL:
      return std::unexpected(Error{ErrorCode::not_found, number});
    case ENOBUFS:
      return std::unexpected(Error{ErrorCode::limit, number});
    default:
      return std::unexpected(Error::from_errno(number));
  }
}

}  // namespace

std::expected<DatagramSocket, Error> DatagramSocket::open(const Address& of, const Options& options) noexcept {
  const int family = of.get()->sa_family, on = 1;
  const int fd = kernel::datagram_socket(family);
  if (fd < 0) return refused_by_kernel(fd);
  if (options.receive_bytes > 0) {
    ::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &options.receive_bytes, sizeof options.receive_bytes);
  }
  if (family != AF_UNIX) {
    if (options.share) ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (options.broadcast) ::setsockopt(fd, SOL_SOCKET, SO_BROADCAST, &on, sizeof on);
  }
  return DatagramSocket(fd, family);
}

std::expected<DatagramSocket, Error> DatagramSocket::bind(const Address& at, Options options) noexcept {
  const bool ipv4_too = at.is_any() && at.family() == Address::Family::ipv6;
  auto socket = open(at, options);
  if (!socket && ipv4_too && socket.error() == ErrorCode::unsupported) return bind(at.as_ipv4_any(), options);
  if (!socket) return socket;
  const int fd = socket->fd(), on = 1, off = 0;
  if (at.family() == Address::Family::unix_path) {
    if (path_is_orphaned(at, SOCK_DGRAM)) ::unlink(at.unix_path().data());
  } else {
    // Without these, each group that any program of the machine has joined would come in.
    ::setsockopt(fd, IPPROTO_IP, IP_MULTICAST_ALL, &off, sizeof off);
    if (at.family() == Address::Family::ipv6) {
      ::setsockopt(fd, IPPROTO_IPV6, kIpv6MulticastAll, &off, sizeof off);
      ::setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, at.is_any() ? &off : &on, sizeof on);
      ::setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof on);
    }
    ::setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof on);
  }
  if (const int outcome = kernel::bind(fd, at.get(), at.length()); outcome < 0) {
    if (ipv4_too && outcome == -EADDRNOTAVAIL) return bind(at.as_ipv4_any(), options);
    return refused_by_kernel(outcome);
  }
  return socket;
}

std::expected<DatagramSocket, Error> DatagramSocket::connect(const Address& to, Options options) noexcept {
  auto socket = open(to, options);
  if (!socket) return socket;
  if (auto connected = socket->connect_to(to); !connected) return std::unexpected(connected.error());
  return socket;
}

std::expected<void, Error> DatagramSocket::connect_to(const Address& peer) noexcept {
  const detail::UsedDescriptor::Use use(socket_);
  if (!use) return std::unexpected(Error{ErrorCode::closed});
  int outcome;
  do {
    outcome = kernel::connect(use.fd(), peer.get(), peer.length());
  } while (outcome == -EINTR);
  if (outcome < 0) return refused_by_kernel(outcome);
  return {};
}

std::expected<void, Error> DatagramSocket::set(int level, int name, const void* value, socklen_t size) noexcept {
  const detail::UsedDescriptor::Use use(socket_);
  if (!use) return std::unexpected(Error{ErrorCode::closed});
  if (const int outcome = kernel::set_option(use.fd(), level, name, value, size); outcome < 0) {
    return membership_error(-outcome);
  }
  return {};
}

std::expected<void, Error> DatagramSocket::change_membership(const Address& group, unsigned interface,
                                                             bool join) noexcept {
  std::expected<void, Error> done;
  if (group.family() == Address::Family::ipv4) {
    ip_mreqn wanted = {};
    memcpy(&wanted.imr_multiaddr, &reinterpret_cast<const sockaddr_in*>(group.get())->sin_addr, sizeof(in_addr));
    wanted.imr_ifindex = static_cast<int>(interface);
    done = set(IPPROTO_IP, join ? IP_ADD_MEMBERSHIP : IP_DROP_MEMBERSHIP, &wanted, sizeof wanted);
  } else if (group.family() == Address::Family::ipv6) {
    ipv6_mreq wanted = {};
    memcpy(&wanted.ipv6mr_multiaddr, &reinterpret_cast<const sockaddr_in6*>(group.get())->sin6_addr, sizeof(in6_addr));
    wanted.ipv6mr_interface = interface;
    done = set(IPPROTO_IPV6, join ? IPV6_ADD_MEMBERSHIP : IPV6_DROP_MEMBERSHIP, &wanted, sizeof wanted);
  } else {
    return std::unexpected(Error{ErrorCode::invalid});
  }
  return done;
}

std::expected<void, Error> DatagramSocket::join(const Address& group, unsigned interface) noexcept {
  auto joined = change_membership(group, interface, true);
  // It has joined before.
  if (!joined && joined.error().sys == EADDRINUSE) return {};
  return joined;
}

std::expected<void, Error> DatagramSocket::leave(const Address& group, unsigned interface) noexcept {
  return change_membership(group, interface, false);
}

std::expected<void, Error> DatagramSocket::set_multicast(const Multicast& how) noexcept {
  if (how.hops < 0 || how.hops > 255) return std::unexpected(Error{ErrorCode::invalid});
  const int loop = how.loop, index = static_cast<int>(how.interface);
  ip_mreqn by = {};
  by.imr_ifindex = index;
  const struct {
    int level, name;
    const void* value;
    socklen_t size;
  } options[] = {
      {IPPROTO_IP, IP_MULTICAST_TTL, &how.hops, sizeof how.hops},
      {IPPROTO_IP, IP_MULTICAST_LOOP, &loop, sizeof loop},
      {IPPROTO_IP, IP_MULTICAST_IF, &by, sizeof by},
      {IPPROTO_IPV6, IPV6_MULTICAST_HOPS, &how.hops, sizeof how.hops},
      {IPPROTO_IPV6, IPV6_MULTICAST_LOOP, &loop, sizeof loop},
      {IPPROTO_IPV6, IPV6_MULTICAST_IF, &index, sizeof index},
  };
  for (const auto& each : options) {
    // A socket of IPv6 takes IPv4's as well.
    if (each.level == IPPROTO_IPV6 && family_ != AF_INET6) break;
    if (auto done = set(each.level, each.name, each.value, each.size); !done) return done;
  }
  return {};
}

std::expected<void, Error> DatagramSocket::set_hops(int hops) noexcept {
  if (hops < 1 || hops > 255) return std::unexpected(Error{ErrorCode::invalid});
  auto done = set(IPPROTO_IP, IP_TTL, &hops, sizeof hops);
  if (done && family_ == AF_INET6) done = set(IPPROTO_IPV6, IPV6_UNICAST_HOPS, &hops, sizeof hops);
  return done;
}

std::expected<Address, Error> DatagramSocket::local_address() const noexcept {
  sockaddr_storage name;
  socklen_t length;
  if (!is_open()) return std::unexpected(Error{ErrorCode::closed});
  if (const int outcome = kernel::local_name(fd(), name, length); outcome < 0) return refused_by_kernel(outcome);
  return Address::from_sockaddr(reinterpret_cast<const sockaddr*>(&name), length);
}

DatagramSocket& DatagramSocket::operator=(DatagramSocket&& other) noexcept {
  if (this != &other) {
    close();
    socket_ = std::move(other.socket_);
    family_ = other.family_;
  }
  return *this;
}

void DatagramSocket::close() noexcept {
  if (!is_open()) return;
  if (family_ == AF_UNIX) {
    // The path first: whoever binds it next must not lose it.
    const auto name = local_address();
    if (name && !name->unix_path().empty() && name->unix_path()[0] != '\0') ::unlink(name->unix_path().data());
  }
  socket_.close();
}

}  // namespace coir
