// DatagramSocket joins groups and sends to them. All traffic stays on the loopback interface.

#include <CppUTest/TestHarness.h>
#include <coir/net/datagram.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tests/support/both_sides.h"
#include "tests/support/child.h"
#include "tests/support/until.h"

namespace multicast_test {

using namespace std::chrono_literals;
using coir::Address;
using coir::DatagramSocket;
using coir::Deadline;
using coir::ErrorCode;
using coir::LocalEnd;
using coir::test::until;

namespace {

Deadline soon() {
  return Deadline::after(60s);
}

// A group with a socket's port.
Address group(const char* of, const DatagramSocket& socket) {
  char text[64];
  const auto at = socket.local_address();
  snprintf(text, sizeof text, "%s:%d", of, at ? at->port() : 0);
  return *Address::parse(text);
}

bool fails(const auto& outcome, ErrorCode code) {
  return !outcome && outcome.error() == code;
}

// An emulator of system calls, as QEMU's user mode, knows few of the options.
bool lacks_groups() {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), off = 0;
  const bool lacks = setsockopt(fd, IPPROTO_IP, IP_MULTICAST_ALL, &off, sizeof off) != 0;
  close(fd);
  if (lacks) printf("(skipped: no options for groups here, as in QEMU)");
  return lacks;
}

int option(const DatagramSocket& socket, int level, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  getsockopt(socket.fd(), level, name, &value, &size);
  return value;
}

// members_alone_receive returns 0, or the number of the step that went wrong.
int members_alone_receive(const char* here, const char* senders, const char* groups, const char* interface = "lo") {
  const LocalEnd by = {.interface = if_nametoindex(interface)};
  auto member = DatagramSocket::bind(*Address::parse(here), {.share = true});
  auto sender = DatagramSocket::bind(*Address::parse(senders));
  if (!member || !sender) return 1;
  auto other = DatagramSocket::bind(Address::parse(here)->with_port(member->local_address()->port()), {.share = true});
  const Address to = group(groups, *member);
  if (!other || !member->join(to, by.interface) || !member->join(to, by.interface)) return 2;

  char buffer[8];
  // The kernel may still be about to give the interface its address and routes.
  if (!until([&] { return sender->send_to("all", to, by, soon()).has_value(); }, soon())) return 3;
  const auto got = member->receive_from(buffer, soon());
  if (!got || got->bytes != "all" || !got->local.group || got->local.interface != by.interface) return 4;
  // The answer goes to one, and by the interface.
  if (!member->answer("one", *got, soon())) return 5;
  const auto answered = sender->receive_from(buffer, soon());
  if (!answered || answered->bytes != "one" || answered->local.group) return 6;
  if (!fails(other->receive_from(buffer, Deadline::now()), ErrorCode::timed_out)) return 7;

  if (!member->leave(to, by.interface)) return 8;
  if (!fails(member->leave(to, by.interface), ErrorCode::not_found)) return 9;
  // A socket that has left the group receives only datagrams for itself: the second datagram is the first that it gets.
  if (!other->join(to, by.interface) || !sender->send_to("again", to, by, soon())) return 10;
  const auto again = other->receive_from(buffer, soon());
  if (!again || again->bytes != "again") return 11;
  return fails(member->receive_from(buffer, Deadline::now()), ErrorCode::timed_out) ? 0 : 12;
}

// link_local_address is that of an interface; its port is to be set.
Address link_local_address(const char* interface) {
  sockaddr_in6 found = {};
  found.sin6_family = AF_INET6;
  found.sin6_scope_id = if_nametoindex(interface);
  FILE* const list = fopen("/proc/net/if_inet6", "re");
  for (char line[128]; list != nullptr && fgets(line, sizeof line, list) != nullptr;) {
    if (strncmp(line, "fe80", 4) != 0 || strstr(line, interface) == nullptr) continue;
    for (int i = 0; i < 16; ++i) {
      unsigned byte = 0;
      sscanf(line + 2 * i, "%2x", &byte);
      found.sin6_addr.s6_addr[i] = static_cast<unsigned char>(byte);
    }
  }
  if (list != nullptr) fclose(list);
  return Address::from_sockaddr(reinterpret_cast<const sockaddr*>(&found), sizeof found);
}

// link_local_answers returns 0, or the number of the step that went wrong. The peer's address does not tell the
// interface of this machine's.
int link_local_answers(const char* interface) {
  struct {
    in6_addr address;
    std::uint32_t prefix;
    int index;
  } added = {{}, 64, static_cast<int>(if_nametoindex(interface))};
  added.address.s6_addr[0] = 0xfd;
  added.address.s6_addr[15] = 7;
  const int any = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (ioctl(any, SIOCSIFADDR, &added) != 0) return 21;
  close(any);
  auto server = DatagramSocket::bind(*Address::parse("[::]:0"));
  std::expected<DatagramSocket, coir::Error> client;
  if (!until([&] { return (client = DatagramSocket::bind(*Address::parse("[fd00::7]:0"))).has_value(); }, soon())) {
    return 22;
  }
  const Address asked = link_local_address(interface).with_port(server->local_address()->port());
  if (!client->connect_to(asked) || !client->send("ask", soon())) return 23;
  char buffer[8];
  const auto question = server->receive_from(buffer, soon());
  if (!question || question->local.address[0] != 0xfe || !server->answer("one", *question, soon())) return 24;
  const auto answer = client->receive_from(buffer, soon());
  return answer && answer->bytes == "one" ? 0 : 25;
}

}  // namespace

TEST_GROUP_BASE(Multicast, coir::test::BothSides) {};

TEST(Multicast, members_alone_receive_what_is_sent_to_a_group) {
  if (lacks_groups()) return;
  both_sides([&] { expect(members_alone_receive("0.0.0.0:0", "127.0.0.1:0", "239.255.77.1") == 0); });
}

TEST(Multicast, a_socket_of_both_families_joins_groups_of_both) {
  if (lacks_groups()) return;
  both_sides([&] { expect(members_alone_receive("*:0", "127.0.0.1:0", "239.255.77.2") == 0); });
}

TEST(Multicast, a_group_that_cannot_be_joined_is_an_error) {
  if (lacks_groups()) return;
  both_sides([&] {
    auto socket = DatagramSocket::bind(*Address::parse("*:0"));
    expect(socket.has_value());
    if (!socket) return;
    const unsigned loopback = if_nametoindex("lo");
    expect(fails(socket->join(*Address::parse("239.255.77.3:1"), 0x7fffffff), ErrorCode::not_found));
    expect(fails(socket->join(*Address::parse("[ff02::7703]:1"), 0x7fffffff), ErrorCode::not_found));
    expect(fails(socket->join(*Address::parse("127.0.0.1:1"), loopback), ErrorCode::invalid));
    expect(fails(socket->join(*Address::parse("[::1]:1"), loopback), ErrorCode::invalid));
    expect(fails(socket->join(*Address::parse("unix:/x"), loopback), ErrorCode::invalid));
    expect(fails(socket->set_multicast({.interface = 0x7fffffff}), ErrorCode::not_found));
    expect(fails(socket->set_multicast({.hops = 256}), ErrorCode::invalid));
    expect(fails(socket->set_hops(0), ErrorCode::invalid));
  });
}

TEST(Multicast, hops_and_loop_are_set_for_both_families) {
  if (lacks_groups()) return;
  both_sides([&] {
    auto socket = DatagramSocket::bind(*Address::parse("*:0"));
    expect(socket.has_value());
    if (!socket) return;
    expect(socket->set_multicast({.interface = if_nametoindex("lo"), .hops = 255, .loop = false}).has_value());
    expect(socket->set_hops(254).has_value());
    expect(option(*socket, IPPROTO_IP, IP_MULTICAST_TTL) == 255 &&
           option(*socket, IPPROTO_IPV6, IPV6_MULTICAST_HOPS) == 255);
    expect(option(*socket, IPPROTO_IP, IP_MULTICAST_LOOP) == 0 &&
           option(*socket, IPPROTO_IPV6, IPV6_MULTICAST_LOOP) == 0);
    expect(option(*socket, IPPROTO_IP, IP_TTL) == 254 && option(*socket, IPPROTO_IPV6, IPV6_UNICAST_HOPS) == 254);
    expect(option(*socket, IPPROTO_IPV6, IPV6_MULTICAST_IF) == static_cast<int>(if_nametoindex("lo")));
  });
}

// Groups of IPv6 do not come in by the loopback interface: the test makes one of its own, in a network of its own.
TEST_GROUP(MulticastIpv6) {};

TEST(MulticastIpv6, members_alone_receive_and_link_local_addresses_answer) {
  if (lacks_groups()) return;
  constexpr int kNoNetwork = 77;
  const coir::test::ChildEnd end = coir::test::in_child([] {
    if (unshare(CLONE_NEWNET) != 0) return kNoNetwork;
    // Its address is to be there at once.
    const int setting = open("/proc/sys/net/ipv6/conf/default/accept_dad", O_WRONLY | O_CLOEXEC);
    if (setting < 0 || write(setting, "0", 1) != 1) return kNoNetwork;
    const int tap = open("/dev/net/tun", O_RDWR | O_CLOEXEC), any = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ifreq link = {};
    strcpy(link.ifr_name, "tap0");
    link.ifr_flags = IFF_TAP | IFF_NO_PI;
    if (tap < 0 || ioctl(tap, TUNSETIFF, &link) != 0) return kNoNetwork;
    link.ifr_flags = IFF_UP | IFF_MULTICAST;
    ifreq loopback = {};
    strcpy(loopback.ifr_name, "lo");
    loopback.ifr_flags = IFF_UP;
    if (ioctl(any, SIOCSIFFLAGS, &loopback) != 0) return kNoNetwork;
    if (ioctl(any, SIOCSIFFLAGS, &link) != 0) return kNoNetwork;
    const int step = members_alone_receive("[::]:0", "[::]:0", "[ff02::7701]", "tap0");
    return step != 0 ? step : link_local_answers("tap0");
  });
  if (end.status == kNoNetwork) {
    printf("(skipped: a network of one's own needs root, IPv6 and /dev/net/tun)");
    return;
  }
  CHECK_EQUAL(0, end.status);
}

}  // namespace multicast_test
