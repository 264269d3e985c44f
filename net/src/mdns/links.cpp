#include "mdns/links.h"

#include <coir/sum.h>
#include <errno.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

namespace coir::mdns {
namespace {

// The kernel's system calls, whose errno is taken at once: see socket/kernel.h.
[[gnu::noinline]] int open_netlink(unsigned groups) noexcept {
  const int fd = ::socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (fd < 0) return -errno;
  sockaddr_nl here{};
  here.nl_family = AF_NETLINK;
  here.nl_groups = groups;
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&here), sizeof here) == 0) return fd;
  const int number = errno;
  ::close(fd);
  return -number;
}

[[gnu::noinline]] ssize_t receive(int fd, std::span<char> into) noexcept {
  const ssize_t got = ::recv(fd, into.data(), into.size(), MSG_DONTWAIT);
  return got < 0 ? -errno : got;
}

[[gnu::noinline]] int ask(int fd, std::uint16_t type) noexcept {
  struct {
    nlmsghdr head;
    rtgenmsg body;
  } request{};
  request.head.nlmsg_len = NLMSG_LENGTH(sizeof request.body);
  request.head.nlmsg_type = type;
  request.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  request.body.rtgen_family = AF_UNSPEC;
  return ::send(fd, &request, request.head.nlmsg_len, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

// body is what stands behind a message's head, where it is as long as a T.
template <class T>
const T* body(const nlmsghdr& message) noexcept {
  if (message.nlmsg_len < NLMSG_LENGTH(sizeof(T))) return nullptr;
  return reinterpret_cast<const T*>(reinterpret_cast<const char*>(&message) + NLMSG_HDRLEN);
}

// each_attribute visits what stands behind a message's body: its type and its bytes.
template <class Body, class Visit>
void each_attribute(const nlmsghdr& message, Visit visit) noexcept {
  const char* attribute = reinterpret_cast<const char*>(&message) + NLMSG_SPACE(sizeof(Body));
  const char* const end = reinterpret_cast<const char*>(&message) + message.nlmsg_len;
  while (end - attribute >= static_cast<std::ptrdiff_t>(sizeof(rtattr))) {
    rtattr each;
    memcpy(&each, attribute, sizeof each);
    if (each.rta_len < sizeof each || each.rta_len > end - attribute) break;
    visit(each.rta_type, std::span(attribute + RTA_LENGTH(0), each.rta_len - RTA_LENGTH(0)));
    if (end - attribute <= static_cast<std::ptrdiff_t>(RTA_ALIGN(each.rta_len))) break;
    attribute += RTA_ALIGN(each.rta_len);
  }
}

// Links is the links that take multicast, of which most may have no address, as a bridge's ports and containers' ends.
struct Links {
  static constexpr std::size_t kMost = 128;

  std::span<const std::uint32_t> all() const noexcept { return {indices, count}; }

  std::size_t count = 0;
  std::uint32_t indices[kMost];
};

void take_link(const nlmsghdr& message, Links& into) noexcept {
  const auto* link = body<ifinfomsg>(message);
  constexpr unsigned kWanted = IFF_UP | IFF_RUNNING | IFF_MULTICAST;
  if (link == nullptr || (link->ifi_flags & kWanted) != kWanted || (link->ifi_flags & IFF_LOOPBACK) != 0) return;
  if (into.count < Links::kMost) into.indices[into.count++] = static_cast<std::uint32_t>(link->ifi_index);
}

// interface_of finds the place for an address of a link; null: there is none.
Interface* interface_of(std::uint32_t index, const Links& links, Interfaces& into) noexcept {
  if (std::ranges::find(links.all(), index) == links.all().end()) return nullptr;
  Interface* const end = into.list + into.count;
  Interface* const at = std::ranges::find(into.list, end, index, &Interface::index);
  if (at != end) return at->count < kMostAddresses ? at : nullptr;
  if (into.count == kMostInterfaces) return nullptr;
  *at = {};
  at->index = index;
  ++into.count;
  return at;
}

void take_address(const nlmsghdr& message, const Links& links, Interfaces& into) noexcept {
  const auto* head = body<ifaddrmsg>(message);
  if (head == nullptr || (head->ifa_flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED | IFA_F_DEPRECATED)) != 0) return;
  // A privacy address is made not to be known by name.
  if (head->ifa_family == AF_INET6 && (head->ifa_flags & IFA_F_TEMPORARY) != 0) return;
  const std::size_t size = head->ifa_family == AF_INET ? 4 : head->ifa_family == AF_INET6 ? 16 : 0;
  if (size == 0) return;
  LinkAddress found;
  each_attribute<ifaddrmsg>(message, [&](unsigned short type, std::span<const char> bytes) {
    // If the two differ, IFA_ADDRESS is the other end of a line between two.
    const bool own = type == IFA_LOCAL || (type == IFA_ADDRESS && found.size == 0);
    if (!own || bytes.size() != size) return;
    memcpy(found.bytes, bytes.data(), size);
    found.size = static_cast<std::uint8_t>(size);
  });
  Interface* const at = found.size != 0 ? interface_of(head->ifa_index, links, into) : nullptr;
  if (at == nullptr) return;
  found.prefix = std::min<std::uint8_t>(head->ifa_prefixlen, static_cast<std::uint8_t>(size * 8));
  at->addresses[at->count++] = found;
}

// take_hardware takes the address of a link's hardware, where the link is one of `into`.
void take_hardware(const nlmsghdr& message, Interfaces& into) noexcept {
  const auto* link = body<ifinfomsg>(message);
  if (link == nullptr) return;
  for (Interface& each : std::span(into.list, into.count)) {
    if (each.index != static_cast<std::uint32_t>(link->ifi_index)) continue;
    each_attribute<ifinfomsg>(message, [&](unsigned short type, std::span<const char> bytes) {
      if (type == IFLA_ADDRESS) each.hardware = sum_of(bytes);
    });
  }
}

// dump asks for one kind and takes each message of the answer.
template <class Take>
std::expected<void, Error> dump(int fd, std::uint16_t type, std::span<char> room, Take take) noexcept {
  if (const int asked = ask(fd, type); asked < 0) return std::unexpected(Error::from_errno(-asked));
  for (;;) {
    const ssize_t got = receive(fd, room);
    if (got == -EINTR) continue;
    if (got < 0) return std::unexpected(Error::from_errno(static_cast<int>(-got)));
    std::size_t rest = static_cast<std::size_t>(got);
    for (char* at = room.data(); rest >= sizeof(nlmsghdr);) {
      const auto& message = *reinterpret_cast<const nlmsghdr*>(at);
      if (message.nlmsg_len < sizeof message || message.nlmsg_len > rest) break;
      if (message.nlmsg_type == NLMSG_DONE) return {};
      if (message.nlmsg_type == NLMSG_ERROR) return std::unexpected(Error::from_errno(EIO));
      take(message);
      const std::size_t step = std::min<std::size_t>(NLMSG_ALIGN(message.nlmsg_len), rest);
      at += step;
      rest -= step;
    }
    if (got == 0) return std::unexpected(Error::from_errno(EIO));
  }
}

}  // namespace

std::expected<void, Error> scan_interfaces(Interfaces& into, std::span<char> room) noexcept {
  into.count = 0;
  const int fd = open_netlink(0);
  if (fd < 0) return std::unexpected(Error::from_errno(-fd));
  Links links;
  auto done = dump(fd, RTM_GETLINK, room, [&](const nlmsghdr& message) { take_link(message, links); });
  // Without an address nothing can be sent there, so addresses choose the links. Those of IPv4 come first.
  if (done) done = dump(fd, RTM_GETADDR, room, [&](const nlmsghdr& message) { take_address(message, links, into); });
  if (done) done = dump(fd, RTM_GETLINK, room, [&](const nlmsghdr& message) { take_hardware(message, into); });
  ::close(fd);
  return done;
}

int watch_links() noexcept {
  const int fd = open_netlink(RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR);
  return fd < 0 ? -1 : fd;
}

bool links_changed(int watch, std::span<char> room) noexcept {
  bool any = false;
  for (;;) {
    const ssize_t got = receive(watch, room);
    // A queue that ran over has lost news: that is news, too.
    if (got <= 0 && got != -ENOBUFS && got != -EINTR) return any;
    any = true;
  }
}

}  // namespace coir::mdns
