// Address reads what users write, writes what it reads, and names the part that is wrong.

#include <CppUTest/TestHarness.h>
#include <coir/net/address.h>
#include <string.h>
#include <sys/un.h>

#include <string_view>

namespace address_test {

using coir::Address;

namespace {

char text[Address::kMaxText + 1];

// formatted returns the text of `address`, terminated for the comparison.
const char* formatted(const Address& address) {
  const std::string_view written = address.format({text, sizeof text - 1});
  text[written.size()] = '\0';
  return text;
}

void check_round_trip(const char* from, const char* to) {
  const auto address = Address::parse(from);
  CHECK_TRUE_TEXT(address.has_value(), from);
  STRCMP_EQUAL(to, formatted(*address));
}

}  // namespace

TEST_GROUP(Address) {};

TEST(Address, reads_and_writes_every_kind) {
  check_round_trip("127.0.0.1:80", "127.0.0.1:80");
  check_round_trip("255.255.255.255:65535", "255.255.255.255:65535");
  check_round_trip("[::1]:8080", "[::1]:8080");
  check_round_trip(":80", "*:80");
  check_round_trip("*:0", "*:0");
  check_round_trip("unix:/run/coird.sock", "unix:/run/coird.sock");
  check_round_trip("unix:@coird", "unix:@coird");
}

TEST(Address, ipv6_is_written_canonically) {
  check_round_trip("[::]:1", "[::]:1");
  check_round_trip("[2001:DB8:0:0:0:0:0:1]:1", "[2001:db8::1]:1");
  check_round_trip("[2001:db8:0:1:1:1:1:1]:1", "[2001:db8:0:1:1:1:1:1]:1");
  check_round_trip("[2001:0:0:1:0:0:0:1]:1", "[2001:0:0:1::1]:1");
  check_round_trip("[2001:db8:0:0:1:0:0:1]:1", "[2001:db8::1:0:0:1]:1");
  check_round_trip("[1:2:3:4:5:6:0:0]:1", "[1:2:3:4:5:6::]:1");
  check_round_trip("[0:0:1:2:3:4:5:6]:1", "[::1:2:3:4:5:6]:1");
  check_round_trip("[::ffff:192.0.2.1]:1", "[::ffff:192.0.2.1]:1");
  check_round_trip("[fe80::abcd:12]:1", "[fe80::abcd:12]:1");
}

TEST(Address, knows_family_and_port) {
  LONGS_EQUAL(80, Address::parse("127.0.0.1:80")->port());
  CHECK(Address::parse("127.0.0.1:80")->family() == Address::Family::ipv4);
  LONGS_EQUAL(81, Address::parse("[::1]:81")->port());
  CHECK(Address::parse("[::1]:81")->family() == Address::Family::ipv6);
  CHECK(Address::parse(":82")->is_any());
  CHECK_FALSE(Address::parse("[::]:82")->is_any());
  LONGS_EQUAL(0, Address::parse("unix:/x")->port());
  LONGS_EQUAL(99, Address::parse("*:82")->with_port(99).port());
  STRCMP_EQUAL("*:82", formatted(Address::parse("*:82")->as_ipv4_any()));
}

TEST(Address, wrong_text_is_refused_with_the_reason) {
  const struct {
    const char* text;
    const char* reason;
  } wrong[] = {
      {"", "the port is missing"},
      {"80", "the port is missing"},
      {"127.0.0.1", "the port is missing"},
      {"127.0.0.1:", "the port is not a number"},
      {"127.0.0.1:-1", "the port is not a number"},
      {"127.0.0.1:+1", "the port is not a number"},
      {"127.0.0.1:65536", "the port is not a number"},
      {"127.0.0.1:80x", "the port is not a number"},
      {"127.0.0.1: 80", "the port is not a number"},
      {"127.0.0:80", "the address is not an IPv4 address"},
      {"127.0.0.1.1:80", "the address is not an IPv4 address"},
      {"localhost:80", "the address is not an IPv4 address"},
      {"::1:80", "an IPv6 address needs brackets"},
      {"[::1]", "']' or the port"},
      {"[::1:80", "']' or the port"},
      {"[::g]:80", "the text in brackets"},
      {"[]:80", "the text in brackets"},
      {"[127.0.0.1]:80", "the text in brackets"},
      {"unix:", "the path after 'unix:' is empty"},
  };
  for (const auto& [given, reason] : wrong) {
    const auto address = Address::parse(given);
    CHECK_FALSE_TEXT(address.has_value(), given);
    STRNCMP_EQUAL_TEXT(reason, coir::describe(address.error()), strlen(reason), given);
  }
}

TEST(Address, a_unix_path_is_as_long_as_the_kernel_takes) {
  char path[5 + sizeof(sockaddr_un::sun_path) + 1] = "unix:";
  memset(path + 5, 'x', sizeof(sockaddr_un::sun_path));
  CHECK_FALSE(Address::parse({path, 5 + sizeof(sockaddr_un::sun_path)}).has_value());
  const auto longest = Address::parse({path, 5 + sizeof(sockaddr_un::sun_path) - 1});
  CHECK(longest.has_value());
  LONGS_EQUAL(5 + sizeof(sockaddr_un::sun_path) - 1, strlen(formatted(*longest)));
}

TEST(Address, text_that_does_not_fit_is_empty) {
  char small[8];
  CHECK(Address::parse("127.0.0.1:80")->format(small).empty());
  CHECK_FALSE(Address::parse("*:80")->format(small).empty());
}

}  // namespace address_test
