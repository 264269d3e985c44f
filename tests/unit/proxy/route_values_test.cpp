// Which peers a route trusts, and which client a request is from.

#include "proxy/routes/route_values.h"

#include <CppUTest/TestHarness.h>
#include <coir/http/proxy_table.h>

namespace route_values_test {

using namespace coir::http;
using coir::Address;

TEST_GROUP(RouteValues) {
  static bool trusts(std::string_view list, std::string_view address) {
    return is_trusted(list, *Address::parse(address));
  }
  // behind is who asks, where 10.0.0.1 does so with these fields and 10/8 and the rest of `list` is trusted.
  static bool behind(std::initializer_list<std::string_view> values, std::string_view whom,
                     std::string_view list = "10.0.0.0/8,fd00::/8", std::string_view peer = "10.0.0.1:5") {
    Header fields[6] = {{.name = "Host", .value = "x"}, {.name = "x_forwarded_for", .value = "9.9.9.9"}};
    std::size_t count = 2;
    for (const std::string_view value : values) fields[count++] = {.name = "x-forwarded-FOR", .value = value};
    const Address client = client_behind(*Address::parse(peer), list, std::span(fields).first(count));
    char text[Address::kMaxText];
    const std::string_view found = client.with_port(0).format(text);
    return found.substr(0, found.rfind(':')) == whom;
  }
};

TEST(RouteValues, networks_hold_their_addresses) {
  CHECK(trusts("127.0.0.1", "127.0.0.1:80") && !trusts("127.0.0.1", "127.0.0.2:80"));
  CHECK(trusts("10.0.0.0/8", "10.255.0.1:80") && !trusts("10.0.0.0/8", "11.0.0.1:80"));
  CHECK(trusts("192.168.4.0/22", "192.168.7.9:80") && !trusts("192.168.4.0/22", "192.168.8.1:80"));
  CHECK(trusts("0.0.0.0/0", "1.2.3.4:80") && !trusts("0.0.0.0/0", "[fd00::1]:80"));
  CHECK(trusts("fd00::/8", "[fd12::1]:80") && !trusts("fd00::/8", "[fe80::1]:80") && trusts("::1", "[::1]:80"));
  CHECK(trusts("2001:db8::/33", "[2001:db8:7fff::1]:80") && !trusts("2001:db8::/33", "[2001:db8:8000::1]:80"));
  CHECK(trusts("::1,10.0.0.0/8", "10.0.0.1:80") && trusts("10.0.0.0/8", "[::ffff:10.1.1.1]:80"));
  CHECK(trusts("fd00::0", "[fd00::]:1"));
  CHECK(trusts("unix", "unix:/run/x") && !trusts("unix", "127.0.0.1:1") && !trusts("0.0.0.0/0,::/0", "unix:/run/x"));
}

TEST(RouteValues, addresses_come_with_a_port_or_without) {
  for (const std::string_view text : {"1.2.3.4", "1.2.3.4:80", "::1", "[::1]", "[::1]:80", "fd00::1"}) {
    CHECK(address_of(text).has_value());
  }
  for (const std::string_view text :
       {"", "unknown", "_hidden", ":", ":80", "*:80", "1.2.3", "unix:/x", "[::1", "::1]", "1.2.3.4:x", "[]", "[]:1",
        "11111111111111111111111111111111111111111111111111111111111111111111"}) {
    CHECK(!address_of(text).has_value());
  }
}

TEST(RouteValues, the_first_stranger_from_the_end_asks) {
  CHECK(behind({}, "10.0.0.1"));
  CHECK(behind({"1.2.3.4"}, "1.2.3.4"));
  CHECK(behind({"6.6.6.6, 1.2.3.4"}, "1.2.3.4"));
  CHECK(behind({"6.6.6.6, 1.2.3.4, 10.0.0.2"}, "1.2.3.4"));
  CHECK(behind({"6.6.6.6", "1.2.3.4", "10.0.0.2, 10.0.0.3"}, "1.2.3.4"));
  CHECK(behind({"10.0.0.7"}, "10.0.0.7"));
  CHECK(behind({"1.2.3.4, [fd00::1]:80"}, "1.2.3.4"));
  CHECK(behind({"6.6.6.6, unknown"}, "10.0.0.1"));
  CHECK(behind({"6.6.6.6, unknown, 10.0.0.2"}, "10.0.0.2"));
  CHECK(behind({"6.6.6.6"}, "11.0.0.1", "10.0.0.0/8", "11.0.0.1:5"));
  CHECK(behind({"6.6.6.6"}, "10.0.0.1", ""));
}

}  // namespace route_values_test
