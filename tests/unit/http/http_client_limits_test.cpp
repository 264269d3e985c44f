// The table of what each client address has taken: whom it takes for one client, and that it is bounded.

#include <CppUTest/TestHarness.h>
#include <coir/detail/accounts.h>

#include <cstdint>
#include <string_view>

#include "http/connection/client_limits.h"

namespace http_client_limits_test {

using coir::Address;
using coir::http::ClientLimits;
using coir::http::Exchange;
using coir::http::ServerOptions;

namespace {

std::uint64_t key(const char* text) {
  const auto address = Address::parse(text);
  CHECK(address.has_value());
  return ClientLimits::key_of(*address);
}

ServerOptions limiting(std::size_t connections, std::uint32_t of_each, std::uint32_t rate) {
  return {.handler = [](Exchange&) {},
          .max_connections = connections,
          .max_connections_per_client = of_each,
          .max_requests_per_client = rate};
}

// Enough for the entries beyond max_connections, one for each listener.
constexpr std::uint64_t kBeyond = coir::http::Server::kMaxListeners;

}  // namespace

TEST_GROUP(ClientLimits) {
  ClientLimits limits;

  ClientLimits::Ticket enter(std::uint64_t key) {
    const auto ticket = limits.enter(key);
    CHECK(ticket.has_value());
    return *ticket;
  }
};

TEST(ClientLimits, an_ipv4_address_is_one_client_by_either_family) {
  CHECK(key("1.2.3.4:80") == key("1.2.3.4:81"));
  CHECK(key("1.2.3.4:80") == key("[::ffff:1.2.3.4]:80"));
  CHECK(key("1.2.3.4:80") != key("1.2.3.5:80"));
  CHECK(key("0.0.0.1:80") != 0);
}

TEST(ClientLimits, an_ipv6_network_of_64_bits_is_one_client) {
  CHECK(key("[2001:db8:0:1::1]:80") == key("[2001:db8:0:1:ffff:ffff:ffff:ffff]:80"));
  CHECK(key("[2001:db8:0:1::1]:80") != key("[2001:db8:0:2::1]:80"));
  CHECK(key("[::1]:80") != 0);
  CHECK(key("[::1]:80") != key("0.0.0.1:80"));
}

TEST(ClientLimits, a_unix_socket_has_no_limit) {
  LONGS_EQUAL(0, key("unix:/run/x"));
  CHECK(limits.open(limiting(10, 1, 1)));
  for (int i = 0; i < 100; ++i) {
    LONGS_EQUAL(0, enter(0));
    CHECK(limits.may_ask(0));
  }
}

TEST(ClientLimits, without_limits_nothing_is_charged_and_all_may) {
  const std::size_t before = coir::account::connections.used();
  CHECK(limits.open(limiting(1000, 0, 0)));
  LONGS_EQUAL(before, coir::account::connections.used());
  for (int i = 0; i < 2000; ++i) LONGS_EQUAL(0, enter(key("1.2.3.4:80")));
  CHECK(limits.may_ask(0));
}

TEST(ClientLimits, the_table_is_charged_and_refunded) {
  const std::size_t before = coir::account::connections.used();
  {
    ClientLimits some;
    CHECK(some.open(limiting(1000, 1, 0)));
    CHECK(coir::account::connections.used() - before >= 1000 * 32);
    CHECK(coir::account::connections.used() - before <= 1100 * 64);
  }
  LONGS_EQUAL(before, coir::account::connections.used());
  coir::account::connections.set_ceiling(before + 1000);
  CHECK_FALSE(limits.open(limiting(1000, 1, 0)));
  coir::account::connections.set_ceiling(SIZE_MAX);
  LONGS_EQUAL(before, coir::account::connections.used());
}

TEST(ClientLimits, one_connection_too_many_is_refused_until_another_has_left) {
  CHECK(limits.open(limiting(10, 2, 0)));
  const auto first = enter(7);
  const auto second = enter(7);
  CHECK_FALSE(limits.enter(7).has_value());
  CHECK_FALSE(limits.enter(7).has_value());
  CHECK(limits.enter(8).has_value());
  limits.leave(first);
  enter(7);
  CHECK_FALSE(limits.enter(7).has_value());
  limits.leave(second);
  enter(7);
}

TEST(ClientLimits, requests_have_a_rate_and_a_seconds_worth_at_once) {
  CHECK(limits.open(limiting(10, 0, 5)));
  const auto client = enter(7), other = enter(8);
  int granted = 0;
  for (int i = 0; i < 1000; ++i) granted += limits.may_ask(client);
  // A thousand look-ups take no minutes.
  CHECK(granted >= 5 && granted < 500);
  CHECK(limits.may_ask(other));
}

TEST(ClientLimits, a_client_that_comes_back_has_not_been_forgotten) {
  CHECK(limits.open(limiting(100, 0, 1)));
  const auto first = enter(7);
  CHECK(limits.may_ask(first));
  limits.leave(first);
  int granted = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto again = enter(7);
    granted += limits.may_ask(again);
    limits.leave(again);
  }
  CHECK(granted < 100);
}

TEST(ClientLimits, ever_new_addresses_take_no_more_entries_and_push_out_only_the_gone) {
  CHECK(limits.open(limiting(4, 1, 0)));
  const auto stays = enter(1'000'000);
  for (std::uint64_t each = 1; each < 100'000; ++each) {
    const auto passes = enter(each);
    CHECK(passes >= 1 && passes <= 4 + kBeyond);
    limits.leave(passes);
  }
  CHECK_FALSE(limits.enter(1'000'000).has_value());
  limits.leave(stays);
  enter(1'000'000);
}

TEST(ClientLimits, every_connection_that_there_can_be_has_its_entry) {
  constexpr std::uint64_t kMost = 1000 + kBeyond;
  CHECK(limits.open(limiting(1000, 1, 0)));
  for (std::uint64_t each = 1; each <= kMost; ++each) CHECK(enter(each << 40) != 0);
  for (std::uint64_t each = 1; each <= kMost; ++each) CHECK_FALSE(limits.enter(each << 40).has_value());
}

}  // namespace http_client_limits_test
