// The links that a responder speaks on, in a network of the test's own.
#include "mdns/links.h"

#include <CppUTest/TestHarness.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/support/child.h"

namespace mdns_links_test {

using namespace coir;
using namespace coir::test;

namespace {

constexpr int kNoNetwork = 77;

}  // namespace

TEST_GROUP(MdnsLinks) {};

TEST(MdnsLinks, links_without_addresses_leave_room_for_those_that_have_some) {
  const ChildEnd end = in_child([] {
    if (geteuid() != 0 || unshare(CLONE_NEWNET) != 0) return kNoNetwork;
    FILE* const ip = popen("ip -batch - >/dev/null 2>&1", "w");
    if (ip == nullptr) return kNoNetwork;
    // The last pair alone has an address.
    constexpr int kPairs = 10;
    for (int i = 1; i <= kPairs; ++i) {
      fprintf(ip, "link add a%d type veth peer name b%d\n", i, i);
      for (const char side : {'a', 'b'}) fprintf(ip, "link set dev %c%d addrgenmode none up\n", side, i);
    }
    fprintf(ip, "addr add 10.9.0.1/24 dev a%d\n", kPairs);
    if (pclose(ip) != 0) return kNoNetwork;
    mdns::Interfaces found;
    char room[16384];
    const auto scanned = mdns::scan_interfaces(found, room);
    if (!scanned || found.count != 1) return 1;
    const unsigned char wanted[] = {10, 9, 0, 1};
    return found.list[0].count == 1 && found.list[0].owns(wanted) && found.list[0].addresses[0].prefix == 24 ? 0 : 2;
  });
  if (end.status == kNoNetwork) {
    printf("ok - links without addresses leave room # SKIP no network of its own, or no ip\n");
    return;
  }
  LONGS_EQUAL(0, end.signal);
  LONGS_EQUAL(0, end.status);
}

TEST(MdnsLinks, a_link_that_stays_up_and_gets_another_hardware_address_has_changed) {
  const ChildEnd end = in_child([] {
    if (geteuid() != 0 || unshare(CLONE_NEWNET) != 0) return kNoNetwork;
    if (system("ip link add a type veth peer name b && ip link set dev b addrgenmode none up && ip link set dev a "
               "addrgenmode none up && "
               "ip addr add 10.9.0.1/24 dev a") != 0)
      return kNoNetwork;
    mdns::Interfaces before, after, same;
    char room[16384];
    const int watch = mdns::watch_links();
    if (!mdns::scan_interfaces(before, room) || !mdns::scan_interfaces(same, room) || before.count != 1) return 1;
    if (!(before.list[0] == same.list[0])) return 2;
    static_cast<void>(mdns::links_changed(watch, room));
    if (system("ip link set dev a address 02:00:00:00:00:01") != 0) return kNoNetwork;
    if (!mdns::links_changed(watch, room)) return 3;
    if (!mdns::scan_interfaces(after, room) || after.count != 1) return 4;
    return before.list[0] == after.list[0] ? 5 : 0;
  });
  if (end.status == kNoNetwork) {
    printf("ok - a link that gets another hardware address # SKIP no network of its own, or no ip\n");
    return;
  }
  LONGS_EQUAL(0, end.signal);
  LONGS_EQUAL(0, end.status);
}

}  // namespace mdns_links_test
