#include "datagram/local_end.h"

#include <errno.h>
#include <string.h>

#include <algorithm>

#include "socket/kernel.h"

namespace coir {
namespace {

bool all_zero(const unsigned char* bytes, std::size_t size) noexcept {
  return std::all_of(bytes, bytes + size, [](unsigned char byte) { return byte == 0; });
}

// The beginning of an IPv6 address that stands for an IPv4 address.
constexpr unsigned char kMappedPrefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

bool is_mapped(const unsigned char* address) noexcept {
  return memcmp(address, kMappedPrefix, sizeof kMappedPrefix) == 0;
}

// leads_to_ipv4 tells it of the address that a socket of IPv6 sends to.
bool leads_to_ipv4(const sockaddr* to) noexcept {
  if (to == nullptr || to->sa_family != AF_INET6) return to != nullptr && to->sa_family == AF_INET;
  return is_mapped(reinterpret_cast<const sockaddr_in6*>(to)->sin6_addr.s6_addr);
}

// part_behind is CMSG_NXTHDR, in which musl compares lengths of both signs.
const cmsghdr* part_behind(const cmsghdr& part, const msghdr& message) noexcept {
  const auto* const next = reinterpret_cast<const unsigned char*>(&part) + CMSG_ALIGN(part.cmsg_len);
  const auto* const end = static_cast<const unsigned char*>(message.msg_control) + message.msg_controllen;
  return end - next >= static_cast<std::ptrdiff_t>(sizeof part) ? reinterpret_cast<const cmsghdr*>(next) : nullptr;
}

// bound_ipv4 is the address that a socket of IPv4 is bound to, zero if it is every one.
in_addr bound_ipv4(int fd) noexcept {
  sockaddr_storage name = {};
  socklen_t length;
  if (kernel::local_name(fd, name, length) < 0) return {};
  return reinterpret_cast<const sockaddr_in&>(name).sin_addr;
}

}  // namespace

LocalEnd local_end(const msghdr& message) noexcept {
  LocalEnd end;
  unsigned char* ipv4 = end.address;
  // IPV6_PKTINFO is the first from a socket of both families. It has the address that an IPv4 datagram was sent to, which
  // may be the subnet's; IP_PKTINFO has the interface's own too.
  for (const cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = part_behind(*part, message)) {
    if (part->cmsg_level == IPPROTO_IPV6 && part->cmsg_type == IPV6_PKTINFO) {
      in6_pktinfo info;
      memcpy(&info, CMSG_DATA(part), sizeof info);
      memcpy(end.address, &info.ipi6_addr, sizeof end.address);
      end.interface = info.ipi6_ifindex;
      end.group = end.address[0] == 0xff;
      // No datagram leaves from a group.
      if (end.group) memset(end.address, 0, sizeof end.address);
      ipv4 = end.address + sizeof kMappedPrefix;
    } else if (part->cmsg_level == IPPROTO_IP && part->cmsg_type == IP_PKTINFO) {
      in_pktinfo info;
      memcpy(&info, CMSG_DATA(part), sizeof info);
      memcpy(ipv4, &info.ipi_spec_dst, sizeof info.ipi_spec_dst);
      end.interface = static_cast<std::uint32_t>(info.ipi_ifindex);
      end.group = info.ipi_addr.s_addr != info.ipi_spec_dst.s_addr;
    }
  }
  return end;
}

std::size_t put_local_end(const LocalEnd& from, int fd, int family, const sockaddr* to,
                          unsigned char* control) noexcept {
  if (family == AF_UNIX || (from.interface == 0 && all_zero(from.address, sizeof from.address))) return 0;
  memset(control, 0, kLocalEndSpace);
  auto* const part = reinterpret_cast<cmsghdr*>(control);
  if (family == AF_INET) {
    in_pktinfo info = {};
    info.ipi_ifindex = static_cast<int>(from.interface);
    memcpy(&info.ipi_spec_dst, from.address, sizeof info.ipi_spec_dst);
    // The kernel would choose another address than the one that the socket is bound to.
    if (info.ipi_spec_dst.s_addr == 0) info.ipi_spec_dst = bound_ipv4(fd);
    part->cmsg_level = IPPROTO_IP;
    part->cmsg_type = IP_PKTINFO;
    part->cmsg_len = CMSG_LEN(sizeof info);
    memcpy(CMSG_DATA(part), &info, sizeof info);
    return CMSG_SPACE(sizeof info);
  }
  in6_pktinfo info = {};
  info.ipi6_ifindex = from.interface;
  memcpy(&info.ipi6_addr, from.address, sizeof info.ipi6_addr);
  // The kernel takes none but a mapped one then, also where it is to choose.
  if (leads_to_ipv4(to)) memcpy(&info.ipi6_addr, kMappedPrefix, sizeof kMappedPrefix);
  part->cmsg_level = IPPROTO_IPV6;
  part->cmsg_type = IPV6_PKTINFO;
  part->cmsg_len = CMSG_LEN(sizeof info);
  memcpy(CMSG_DATA(part), &info, sizeof info);
  return CMSG_SPACE(sizeof info);
}

Datagram datagram_of(const msghdr& message, std::size_t size) noexcept {
  const iovec& into = *message.msg_iov;
  Datagram datagram;
  datagram.bytes = {static_cast<const char*>(into.iov_base), std::min(size, into.iov_len)};
  datagram.lost_bytes = size - datagram.bytes.size();
  datagram.peer = Address::from_sockaddr(static_cast<const sockaddr*>(message.msg_name), message.msg_namelen);
  datagram.local = local_end(message);
  return datagram;
}

Error datagram_error(int number) noexcept {
  switch (number) {
    case EMSGSIZE:
      return {ErrorCode::limit, number};
    case EDESTADDRREQ:
    case ENOTCONN:
    case EADDRNOTAVAIL:
    case ENODEV:
    case ENXIO:
      return {ErrorCode::invalid, number};
    default:
      return Error::from_errno(number);
  }
}

}  // namespace coir
