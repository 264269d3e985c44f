#include "proxy/upstreams/upstream.h"

#include <CppUTest/TestHarness.h>
#include <coir/fiber.h>
#include <coir/format.h>

#include <array>
#include <string_view>

#include "http/message/response_parser.h"
#include "tests/support/everywhere.h"
#include "tests/unit/proxy/listening_servers.h"

namespace upstream_group_test {

using namespace coir;
using namespace coir::http;
using namespace coir::test;
using namespace std::chrono_literals;

namespace {

Deadline soon() {
  return Deadline::after(60s);
}

}  // namespace

TEST_GROUP_BASE(UpstreamGroup, coir::test::Everywhere) {};

TEST(UpstreamGroup, addresses_that_are_none_are_refused) {
  const auto error = [](std::string_view url, unsigned weight = 1) {
    const UpstreamServer server{url, weight};
    const auto made = Upstreams::create({&server, 1});
    return made ? ErrorCode{} : made.error().code;
  };
  CHECK_TRUE(error("ftp://127.0.0.1") == ErrorCode::invalid);
  CHECK_TRUE(error("") == ErrorCode::invalid);
  CHECK_TRUE(error("http://anne@host") == ErrorCode::invalid);
  CHECK_TRUE(error("unix:") == ErrorCode::invalid);
  CHECK_TRUE(error("http://host", 0) == ErrorCode::invalid);
  CHECK_TRUE(error("http://host", 101) == ErrorCode::invalid);
  CHECK_TRUE(error("https://host") == ErrorCode::unsupported);
  std::array<UpstreamServer, Upstreams::kMost + 1> many;
  for (UpstreamServer& each : many) each.url = "http://host";
  CHECK_TRUE(Upstreams::create(many).error() == ErrorCode::invalid);
  CHECK_TRUE(Upstreams::create(std::span<const UpstreamServer>()).error() == ErrorCode::invalid);
}

TEST(UpstreamGroup, servers_are_asked_in_turn_by_their_weight) {
  everywhere([&] {
    ListeningServers servers({3, 1});
    auto upstreams = servers.group();
    UpstreamLease leases[8];
    char room[32];
    for (UpstreamLease& each : leases) each = std::move(*upstreams.group().take({}, soon()));
    expect(in_use(upstreams.group(), room) == "6 2");
    // Smoothly: never more than the heavier one's share in a row.
    for (UpstreamLease& each : leases) each.give_back(false);
    expect(in_use(upstreams.group(), room) == "0 0");
    for (int i = 0; i < 4; ++i) leases[i] = std::move(*upstreams.group().take({}, soon()));
    expect(in_use(upstreams.group(), room) == "3 1");
  });
}

TEST(UpstreamGroup, the_server_with_the_fewest_is_asked) {
  everywhere([&] {
    ListeningServers servers({1, 1, 1});
    auto upstreams = servers.group({.balance = Balance::least_connections});
    UpstreamGroup& group = upstreams.group();
    UpstreamLease leases[6];
    char room[32];
    for (UpstreamLease& each : leases) each = std::move(*group.take({}, soon()));
    expect(in_use(group, room) == "2 2 2");
    leases[1].give_back(false);
    leases[4].give_back(false);
    leases[1] = std::move(*group.take({}, soon()));
    leases[4] = std::move(*group.take({}, soon()));
    expect(in_use(group, room) == "2 2 2");
  });
}

TEST(UpstreamGroup, a_key_goes_to_its_own_server_and_keys_to_all) {
  everywhere([&] {
    ListeningServers servers({1, 1, 2});
    auto upstreams = servers.group({.balance = Balance::hash});
    UpstreamGroup& group = upstreams.group();
    const auto chosen = [&](std::uint64_t key) {
      auto lease = group.take({.key = key}, soon());
      expect(lease.has_value());
      for (std::size_t i = 0; i < 3; ++i) {
        if (group.members()[i].in_use != 0) return i;
      }
      return std::size_t{3};
    };
    std::size_t asked[4] = {};
    for (std::uint64_t key = 0; key < 60; ++key) {
      const std::size_t server = chosen(key);
      ++asked[server];
      expect(chosen(key) == server);
    }
    expect(asked[3] == 0 && asked[0] > 3 && asked[1] > 3 && asked[2] > 10);
  });
}

TEST(UpstreamGroup, a_server_has_at_most_so_many_and_whoever_comes_then_waits_in_line) {
  everywhere([&] {
    ListeningServers servers({3, 1});
    auto upstreams = servers.group({.most_in_use = 1});
    UpstreamGroup& group = upstreams.group();
    char room[32];
    UpstreamLease leases[2];
    for (UpstreamLease& each : leases) each = std::move(*group.take({}, soon()));
    expect(in_use(group, room) == "1 1");
    expect(group.take({}, Deadline::after(1ms)).error() == ErrorCode::busy && upstreams.state().unavailable == 1);
    UpstreamLease later[2];
    Fiber fibers[2];
    for (int i = 0; i < 2; ++i) {
      fibers[i] = spawn({.name = "waits"}, [&, i] { later[i] = std::move(*group.take({}, soon())); });
      while (upstreams.state().waiting != static_cast<std::size_t>(i) + 1) yield();
    }
    // One that gives up leaves the line.
    Fiber leaves = spawn({.name = "leaves"}, [&] { expect(group.take({}, soon()).error() == ErrorCode::cancelled); });
    while (upstreams.state().waiting != 3) yield();
    expect(leaves.cancel("it leaves").has_value() && leaves.join().has_value() && upstreams.state().waiting == 2);
    leases[1].give_back(false);
    expect(fibers[0].join().has_value() && bool(later[0]) && !later[1] && in_use(group, room) == "1 1");
    // A lease is handed on, so that nobody who comes later has it first.
    leases[0].give_back(false);
    expect(group.take({}, Deadline::now()).error() == ErrorCode::busy);
    expect(fibers[1].join().has_value() && in_use(group, room) == "1 1");
    for (UpstreamLease& each : later) each.give_back(false);
    expect(in_use(group, room) == "0 0" && upstreams.state().waiting == 0);
  });
}

// The first server is skipped for a second, the second one is full.
TEST(UpstreamGroup, whoever_waits_in_line_has_a_server_that_is_skipped_no_more_before_a_newcomer) {
  everywhere([&] {
    ListeningServers servers({1, 1});
    auto upstreams = servers.group({.most_in_use = 1, .failures = 1, .longest = 60s});
    UpstreamGroup& group = upstreams.group();
    char room[32];
    UpstreamLease leases[2];
    for (UpstreamLease& each : leases) each = std::move(*group.take({}, soon()));
    leases[0].failed(UpstreamFault::cut);
    UpstreamLease later;
    Fiber waits = spawn({.name = "waits"}, [&] {
      auto taken = group.take({}, Deadline::after(20s));
      if (taken) later = std::move(*taken);
    });
    while (upstreams.state().waiting != 1) yield();
    while (!group.members()[0].out_until.passed()) yield();
    expect(group.take({}, Deadline::now()).error() == ErrorCode::busy);
    expect(waits.join().has_value() && bool(later) && in_use(group, room) == "1 1");
    expect(upstreams.state().waiting == 0);
  });
}

TEST(UpstreamGroup, a_server_that_comes_back_serves_as_many_of_the_line_as_it_has_room_for) {
  everywhere([&] {
    ListeningServers servers({1, 1});
    auto upstreams = servers.group({.most_in_use = 2, .failures = 1, .longest = 60s});
    UpstreamGroup& group = upstreams.group();
    const UpstreamMember& first = group.members()[0];
    char room[32];
    UpstreamLease leases[4];
    for (UpstreamLease& each : leases) each = std::move(*group.take({}, soon()));
    leases[0].failed(UpstreamFault::cut);
    leases[2].leave();
    expect(in_use(group, room) == "0 2");
    while (!first.out_until.passed()) yield();
    for (const int i : {0, 2}) leases[i] = std::move(*group.take({}, soon()));
    leases[2].failed(UpstreamFault::cut);
    expect(!first.out_until.passed() && in_use(group, room) == "1 2");
    UpstreamLease later[2];
    Fiber fibers[2];
    for (int i = 0; i < 2; ++i) {
      fibers[i] = spawn({.name = "waits"}, [&, i] { later[i] = std::move(*group.take({}, soon())); });
      while (upstreams.state().waiting != static_cast<std::size_t>(i) + 1) yield();
    }
    leases[0].give_back(false);
    expect(in_use(group, room) == "2 2" && upstreams.state().waiting == 0);
    for (Fiber& each : fibers) expect(each.join().has_value());
  });
}

// The end comes while this fiber keeps its worker: no wake has run when the connection is taken.
TEST(UpstreamGroup, a_connection_that_its_server_has_ended_is_not_used_again) {
  everywhere([&] {
    ListeningServers servers({1});
    auto upstreams = servers.group();
    const auto rest_one = [&] {
      auto lease = upstreams.group().take({}, soon());
      auto accepted = servers.listeners[0].accept(soon());
      expect(lease.has_value() && accepted.has_value());
      char byte;
      expect(!lease->stream().read({&byte, 1}, Deadline::now()));
      lease->give_back(true);
      expect(upstreams.state().resting == 1);
      return accepted;
    };
    {
      auto kept = rest_one();
      expect(upstreams.group().take({}, soon())->reused());
    }
    static_cast<void>(rest_one());
    const auto lease = upstreams.group().take({}, soon());
    expect(lease.has_value() && !lease->reused() && upstreams.state().resting == 0);
  });
}

TEST(UpstreamGroup, a_connection_rests_as_its_server_says) {
  everywhere([&] {
    ListeningServers servers({1});
    auto upstreams = servers.group({.idle_time = 2s});
    TcpStream accepted;
    const auto rest_one = [&](std::string_view keep_alive) {
      auto lease = upstreams.group().take({}, soon());
      expect(lease.has_value());
      accepted = std::move(*servers.listeners[0].accept(soon()));
      char byte;
      expect(!lease->stream().read({&byte, 1}, Deadline::now()));
      const Header field[] = {{"Keep-Alive", keep_alive}};
      ParsedResponse response;
      response.headers = field;
      lease->hear_keep_alive(response);
      lease->give_back(true);
      return upstreams.state().resting;
    };
    // A server that keeps it for a second may have ended it already.
    expect(rest_one("max=3, timeout=1") == 0);
    expect(rest_one("timeout=60") == 1);
  });
}

}  // namespace upstream_group_test
