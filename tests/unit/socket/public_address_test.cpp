// Which addresses are the public Internet's.

#include <coir/net/address.h>

#include <CppUTest/TestHarness.h>
#include <stdio.h>

namespace public_address_test {

using coir::Address;
using coir::is_public;

namespace {

bool public_text(const char* host) {
  char text[80];
  snprintf(text, sizeof text, "%s:80", host);
  const auto address = Address::parse(text);
  CHECK_TEXT(address.has_value(), host);
  return is_public(*address);
}

}  // namespace

TEST_GROUP(PublicAddress) {};

TEST(PublicAddress, ranges_for_special_purposes_are_not_to_their_first_and_last_address) {
  for (const char* host :
       {"0.0.0.0",         "0.255.255.255",   "10.0.0.0",        "10.255.255.255", "100.64.0.0",
        "100.127.255.255", "127.0.0.1",       "127.255.255.255", "169.254.0.0",    "169.254.169.254",
        "172.16.0.0",      "172.31.255.255",  "192.0.0.8",       "192.0.2.1",      "192.88.99.1",
        "192.168.0.0",     "192.168.255.255", "198.18.0.0",      "198.19.255.255", "198.51.100.7",
        "203.0.113.9",     "224.0.0.1",       "239.255.255.255", "240.0.0.1",      "255.255.255.255"}) {
    CHECK_FALSE_TEXT(public_text(host), host);
  }
}

TEST(PublicAddress, addresses_beside_them_are) {
  for (const char* host : {"1.0.0.0",         "9.255.255.255", "11.0.0.0",        "100.63.255.255",  "100.128.0.0",
                           "126.255.255.255", "128.0.0.0",     "169.253.255.255", "169.255.0.0",     "172.15.255.255",
                           "172.32.0.0",      "192.0.1.1",     "192.0.3.0",       "192.167.255.255", "192.169.0.0",
                           "198.17.255.255",  "198.20.0.0",    "203.0.112.1",     "223.255.255.255", "8.8.8.8"}) {
    CHECK_TRUE_TEXT(public_text(host), host);
  }
}

TEST(PublicAddress, only_ipv6_addresses_that_are_given_out_count) {
  for (const char* host : {"[::]", "[::1]", "[::127.0.0.1]", "[fe80::1]", "[febf::1]", "[fec0::1]", "[fc00::1]",
                           "[fdff::1]", "[ff02::1]", "[100::1]", "[2001::1]", "[2001:1ff::1]", "[2001:db8::1]",
                           "[3fff::1]", "[3fff:fff::1]", "[4000::1]", "[64:ff9b:1::1]"}) {
    CHECK_FALSE_TEXT(public_text(host), host);
  }
  for (const char* host : {"[2001:200::1]", "[2606:4700::1111]", "[2a00:1450::1]", "[3ffe::1]", "[3fff:1000::1]"})
    CHECK_TRUE_TEXT(public_text(host), host);
}

TEST(PublicAddress, an_address_that_carries_another_is_as_public_as_that) {
  for (const char* host :
       {"[::ffff:127.0.0.1]", "[::ffff:10.1.2.3]", "[64:ff9b::192.168.0.1]", "[2002:7f00:1::]", "[2002:a00:1::1]"})
    CHECK_FALSE_TEXT(public_text(host), host);
  for (const char* host : {"[::ffff:8.8.8.8]", "[64:ff9b::8.8.8.8]", "[2002:808:808::1]"})
    CHECK_TRUE_TEXT(public_text(host), host);
}

TEST(PublicAddress, a_unix_socket_is_not) {
  CHECK_FALSE(is_public(*Address::parse("unix:/run/it.sock")));
}

}  // namespace public_address_test
