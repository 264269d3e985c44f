// When a server of a group is skipped, and for how long.
#include <CppUTest/TestHarness.h>
#include <coir/fiber.h>

#include "tests/support/dead_host.h"
#include "tests/support/everywhere.h"
#if COIR_TLS
#include "tests/support/tls_pair.h"
#endif
#include "tests/unit/proxy/listening_servers.h"

namespace upstream_skips_test {

using namespace coir;
using namespace coir::http;
using namespace coir::test;
using namespace std::chrono_literals;

namespace {

Deadline soon() {
  return Deadline::after(60s);
}

// lease_of returns a lease of that server; none if it is not asked in its turn.
UpstreamLease lease_of(UpstreamGroup& group, std::size_t index) {
  const UpstreamMember& server = group.members()[index];
  for (std::size_t turn = 0; turn < group.members().size(); ++turn) {
    const std::uint32_t before = server.in_use;
    auto lease = group.take({.must_be_new = true}, soon());
    if (lease && server.in_use != before) return std::move(*lease);
  }
  return {};
}

}  // namespace

TEST_GROUP_BASE(UpstreamSkips, coir::test::Everywhere) {};

TEST(UpstreamSkips, a_server_that_is_down_makes_way_and_is_then_left_alone) {
  everywhere([&] {
    ListeningServers servers({1, 1});
    servers.listeners[0].close();
    auto upstreams = servers.group({.failures = 3, .longest = 60s});
    for (int i = 0; i < 8; ++i) {
      auto lease = upstreams.group().take({}, soon());
      expect(lease.has_value() && upstreams.group().members()[1].in_use == 1);
    }
    expect(upstreams.state().answering == 1 && upstreams.state().servers == 2);
  });
}

TEST(UpstreamSkips, a_server_that_drops_what_comes_costs_its_own_connect_time_and_is_skipped) {
  everywhere([&] {
    ListeningServers servers({1, 1});
    const std::uint16_t port = servers.listeners[1].local_address().port();
    const coir::test::DeadHost dead("127.0.0.2", port);
    expect(dead.usable());
    servers.servers[0].url = coir::format(servers.text[0], "http://127.0.0.2:", port);
    auto upstreams = servers.group({.connect = 20ms, .failures = 3, .longest = 60s});
    const UpstreamMember& silent = upstreams.group().members()[0];
    const Deadline skipped = Deadline::after(1s);
    const auto lease = upstreams.group().take({}, soon());
    expect(lease.has_value() && silent.in_use == 0 && upstreams.group().members()[1].in_use == 1);
    expect(silent.failures == 1 && silent.out_until >= skipped && !silent.down);
  });
}

// The first of two refuses at once; the only one there is may always be asked.
TEST(UpstreamSkips, the_last_server_that_may_be_asked_has_all_of_the_time) {
  for (const bool only : {false, true}) {
    everywhere([&] {
      const coir::test::DeadHost dead("127.0.0.2", 0);
      expect(dead.usable());
      ListeningServers servers({1, 1});
      servers.listeners[0].close();
      servers.servers[1].url = coir::format(servers.text[1], "http://127.0.0.2:", dead.port());
      bool refused_late = true;
      // A busy machine may need all of the time for the one that refuses.
      for (auto time = 30ms; refused_late; time *= 2) {
        auto upstreams = *Upstreams::create(std::span(servers.servers).subspan(only ? 1 : 0, only ? 1 : 2),
                                            {.connect = 0ms, .failures = 1});
        const Deadline until = Deadline::after(time);
        const auto lease = upstreams.group().take({}, until);
        expect(!lease && until.passed());
        refused_late = !only && !lease && lease.error() == ErrorCode::system && time < 8s;
        expect(refused_late || (!lease && lease.error() == ErrorCode::timed_out));
      }
    });
  }
}

#if COIR_TLS
// The kernel takes the connection of a server that is frozen.
TEST(UpstreamSkips, a_server_that_is_silent_in_its_handshake_leaves_the_next_one_time) {
  everywhere([&] {
    ListeningServers servers({1, 1});
    servers.servers[0].url =
        coir::format(servers.text[0], "https://127.0.0.1:", servers.listeners[0].local_address().port());
    const TlsContext tls = authority().client();
    bool has_lease = false;
    // A busy machine may need more time to connect.
    for (auto time = 50ms; !has_lease && time < 4s; time *= 2) {
      auto upstreams = servers.group({.tls = &tls, .connect = 5ms, .longest = 60s});
      const auto lease = upstreams.group().take({}, Deadline::after(time));
      has_lease = lease.has_value();
      const UpstreamMember& frozen = upstreams.group().members()[0];
      expect(!has_lease || (frozen.failures == 1 && !frozen.out_until.passed() && frozen.in_use == 0));
    }
    expect(has_lease);
  });
}
#endif

TEST(UpstreamSkips, where_all_are_down_the_error_is_the_kernel_s_and_then_that_nobody_may_be_asked) {
  everywhere([&] {
    ListeningServers servers({1, 1});
    for (auto& listener : servers.listeners) listener.close();
    auto upstreams = servers.group({.failures = 2, .longest = 60s});
    for (int i = 0; i < 2; ++i) {
      const auto lease = upstreams.group().take({}, soon());
      expect(!lease && lease.error() == ErrorCode::system);
    }
    const auto lease = upstreams.group().take({}, soon());
    expect(!lease && lease.error() == ErrorCode::limit);
    expect(upstreams.state().answering == 0);
  });
}

TEST(UpstreamSkips, the_only_server_is_asked_again_however_often_it_failed) {
  everywhere([&] {
    ListeningServers servers({1});
    servers.listeners[0].close();
    auto upstreams = servers.group({.failures = 2, .longest = 60s});
    for (int i = 0; i < 10; ++i) {
      const auto lease = upstreams.group().take({}, soon());
      expect(!lease && lease.error() == ErrorCode::system);
    }
    expect(upstreams.state().answering == 1);
  });
}

TEST(UpstreamSkips, a_servers_fault_counts_and_a_stale_connection_does_not) {
  everywhere([&] {
    ListeningServers servers({1, 1});
    auto upstreams = servers.group({.failures = 2, .longest = 60s});
    // One is asked after the other.
    const auto ends_with = [&](UpstreamFault fault) {
      for (int i = 0; i < 2; ++i) {
        auto lease = upstreams.group().take({}, soon());
        expect(lease.has_value());
        if (lease) lease->failed(fault);
      }
    };
    for (int i = 0; i < 4; ++i) ends_with(UpstreamFault::stale);
    ends_with(UpstreamFault::cut);
    // Both are forgiven by what went well.
    for (int i = 0; i < 2; ++i) upstreams.group().take({}, soon())->give_back(false);
    ends_with(UpstreamFault::malformed);
    expect(upstreams.state().answering == 2);
    ends_with(UpstreamFault::timed_out);
    expect(upstreams.state().answering == 0);
  });
}

// As where a server restarts: everything that is under way fails within a moment.
TEST(UpstreamSkips, all_that_fails_in_one_moment_skips_a_server_once) {
  everywhere([&] {
    ListeningServers servers({1, 1});
    auto upstreams = servers.group({.failures = 3, .longest = 60s});
    const UpstreamMember& server = upstreams.group().members()[0];
    UpstreamLease leases[12];
    for (UpstreamLease& each : leases) each = lease_of(upstreams.group(), 0);
    for (UpstreamLease& each : leases) each.failed(UpstreamFault::cut);
    expect(server.down && server.failures == 3 && server.out_until <= Deadline::after(1s));
    expect(upstreams.server(0).cut == 12 && upstreams.server(0).downs == 1);
  });
}

TEST(UpstreamSkips, the_pause_doubles_with_each_skip_until_the_server_is_back) {
  everywhere([&] {
    ListeningServers servers({1, 1});
    auto upstreams = servers.group({.failures = 1, .longest = 60s});
    UpstreamGroup& group = upstreams.group();
    const UpstreamMember& server = group.members()[0];
    UpstreamLease old = lease_of(group, 0);
    lease_of(group, 0).failed(UpstreamFault::cut);
    expect(server.out_until <= Deadline::after(1s) && sleep_until(server.out_until).has_value());
    UpstreamLease leases[4];
    for (UpstreamLease& each : leases) each = lease_of(group, 0);
    UpstreamLease well = std::move(leases[3]);
    const Deadline once = Deadline::after(1s);
    for (UpstreamLease& each : leases) each.failed(UpstreamFault::cut);
    expect(server.out_until > once && server.out_until <= Deadline::after(2s));
    well.give_back(false);
    expect(upstreams.state().answering == 2 && !server.down && server.failures == 0);
    // A stream from before the fall says nothing of the server that has come back.
    old.failed(UpstreamFault::cut);
    expect(upstreams.state().answering == 2 && !server.down && server.failures == 0);
    expect(upstreams.server(0).cut == 5);
    lease_of(group, 0).failed(UpstreamFault::cut);
    expect(!server.out_until.passed() && server.out_until <= Deadline::after(1s));
  });
}

// As where two servers restart one after the other, and both are back at once.
TEST(UpstreamSkips, where_all_servers_have_hung_up_they_are_asked_all_the_same) {
  everywhere([&] {
    ListeningServers servers({1, 1});
    auto upstreams = servers.group({.failures = 1, .longest = 60s});
    UpstreamGroup& group = upstreams.group();
    lease_of(group, 0).failed(UpstreamFault::cut);
    lease_of(group, 1).failed(UpstreamFault::malformed);
    expect(upstreams.state().answering == 0);
    auto lease = group.take({}, soon());
    expect(lease.has_value());
    if (lease) lease->give_back(false);
    expect(upstreams.state().answering == 1 && upstreams.state().unavailable == 0);
    // From now on only one is asked.
    UpstreamLease leases[4];
    for (UpstreamLease& each : leases) {
      if (auto taken = group.take({}, soon())) each = std::move(*taken);
    }
    char room[32];
    expect(in_use(group, room) == (group.members()[0].down ? "0 4" : "4 0"));
  });
}

TEST(UpstreamSkips, where_all_servers_are_skipped_one_that_refuses_or_is_silent_is_not_asked) {
  everywhere([&] {
    ListeningServers servers({1, 1});
    auto refusing = servers.group({.failures = 1, .longest = 60s});
    auto silent = servers.group({.failures = 1, .longest = 60s});
    for (const std::size_t i : {0u, 1u}) {
      lease_of(refusing.group(), i).failed(UpstreamFault::cut);
      lease_of(silent.group(), i).failed(UpstreamFault::timed_out);
    }
    expect(silent.group().take({}, soon()).error() == ErrorCode::limit);
    for (auto& listener : servers.listeners) listener.close();
    expect(refusing.group().take({}, soon()).error() == ErrorCode::system);
    expect(refusing.server(0).unreachable == 1 && refusing.server(1).unreachable == 1);
    expect(refusing.group().take({}, soon()).error() == ErrorCode::limit);
  });
}

}  // namespace upstream_skips_test
