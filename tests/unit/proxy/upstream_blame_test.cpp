// Which ends of an exchange count against its upstream, and which do not because clients can cause them.

#include <CppUTest/TestHarness.h>
#include <string.h>

#include <string_view>

#include "tests/support/until.h"
#include "tests/unit/proxy/gateway.h"

namespace upstream_blame_test {

using namespace coir::test;
using coir::http::UpstreamServerState;

namespace {

constexpr std::string_view kGet = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
constexpr std::string_view kUpgrade = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n";
constexpr std::string_view kSwitched = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n";

}  // namespace

TEST_GROUP_BASE(UpstreamBlame, Gateway) {
  // ends has upstreams answer a request by `answer`, and a huge field where it ends in "X: ", and hang up. `blamed`: so
  // many failures count; what became of it counts as `counter` in any case. No client needs to be answered.
  void ends(std::string_view answer, unsigned blamed, std::uint64_t UpstreamServerState::* counter,
            std::string_view asks = kGet, std::string_view more = {}) {
    through(
        [answer](Peer& peer) {
          if (peer.hear().empty() || !peer.say(answer) || !answer.ends_with("X: ")) return;
          for (int i = 0; i < 10'000 && peer.say("0123456789"); ++i) {
          }
        },
        [&](const coir::Address& address, Stage& stage) {
          coir::test::Client client(address);
          expect(client.say(asks));
          if (!more.empty()) static_cast<void>(client.stream.write(more, soon()));
          const coir::http::UpstreamMember& server = stage.group->members()[0];
          until([&] { return stage.group->state_of(server).*counter == 1; });
          until([&] { return stage.group->state_of(server).in_use == 0; });
          expect(server.failures == blamed);
        });
  }
};

TEST(UpstreamBlame, a_head_that_does_not_come_or_is_none_counts) {
  ends("", 1, &UpstreamServerState::cut);
  ends("HTTP/1.1 20", 1, &UpstreamServerState::cut);
  ends("garbage\r\n\r\n", 1, &UpstreamServerState::malformed);
}

TEST(UpstreamBlame, a_head_that_is_too_long_does_not) {
  ends("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX: ", 0, &UpstreamServerState::oversized);
}

TEST(UpstreamBlame, a_request_whose_head_gets_too_long_on_the_way_does_not) {
  static char host[20'000];
  memset(host, 'a', sizeof host);
  Heard heard;
  through(keep_head(heard), {.host = {host, sizeof host}}, [&](const coir::Address& address, Stage& stage) {
    coir::test::Client client(address);
    expect(client.say(kGet) && client.hear("HTTP/1.1 431 "));
    const coir::http::UpstreamMember& server = stage.group->members()[0];
    until([&] { return stage.group->state_of(server).in_use == 0; });
    expect(server.failures == 0 && stage.group->state_of(server).cut == 0 && heard.size == 0);
  });
}

TEST(UpstreamBlame, a_fault_behind_a_head_does_not) {
  ends("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello", 0, &UpstreamServerState::cut);
  ends("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnone\r\n", 0, &UpstreamServerState::cut);
  ends("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n", 0,
       &UpstreamServerState::cut);
}

TEST(UpstreamBlame, a_tunnel_that_is_reset_because_of_what_its_client_sends_does_not) {
  static char filler[60'000];
  ends(kSwitched, 0, &UpstreamServerState::requests, kUpgrade, {filler, sizeof filler});
}

TEST(UpstreamBlame, content_that_is_not_wanted_does_not) {
  static char filler[16'000];
  ends("", 0, &UpstreamServerState::cut, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n",
       {filler, sizeof filler});
}

}  // namespace upstream_blame_test
