// Why no upstream has answered: the word that the log and the counters have for it.

#include <CppUTest/TestHarness.h>

#include <atomic>

#include "tests/unit/proxy/gateway.h"

namespace forward_failures_test {

using namespace coir::test;
using coir::http::ForwardFailure;
using coir::http::Upstreams;

TEST_GROUP_BASE(ForwardFailures,
                Gateway) {  // says_so checks that the failure has been counted, and no other.
  void says_so(const Stage& stage, ForwardFailure failure) {
    for (std::size_t i = 0; i < coir::http::kForwardFailures; ++i) {
      const std::uint64_t wanted = i == static_cast<std::size_t>(failure) ? 1 : 0;
      expect(stage.forwarder->counters().failures[i].load() == wanted);
    }
  }
  // fails has the upstream play a script, and checks what the client hears.
  void fails(ForwardFailure failure, std::string_view status, ScriptedServer::Script script,
             const ForwardRules& rules = {}) {
    through(std::move(script), rules, [&](const coir::Address& address, Stage& stage) {
      coir::test::Client client(address);
      expect(client.say(kGet) && client.hear(status));
      says_so(stage, failure);
    });
  }
  // fails_at does for an upstream at another address.
  void fails_at(std::string_view url, ForwardFailure failure, std::string_view status, const ForwardRules& rules = {},
                unsigned times = 1) {
    through([](Peer&) {}, rules,
            [&](const coir::Address& address, Stage& stage) {
              auto other = Upstreams::create(url);
              UpstreamGroup* const group = std::exchange(stage.group, &other->group());
              coir::test::Client client(address);
              for (unsigned i = 0; i < times; ++i) {
                client.have = 0;
                expect(client.say(kGet) && client.hear(status));
              }
              says_so(stage, failure);
              stage.group = group;
            });
  }
};

TEST(ForwardFailures, a_port_without_a_listener_is_refused) {
  char url[32];
  auto listener = coir::TcpListener::listen(*coir::Address::parse("127.0.0.1:0"));
  const std::string_view nobody = coir::format(url, "http://127.0.0.1:", listener->local_address().port());
  listener->close();
  fails_at(nobody, ForwardFailure::refused, "HTTP/1.1 502 ");
}

TEST(ForwardFailures, a_unix_socket_that_is_not_there_is_refused) {
  fails_at("unix:/nowhere/at/all.sock", ForwardFailure::refused, "HTTP/1.1 502 ");
}

TEST(ForwardFailures, an_upstream_that_hangs_up_is_cut_off) {
  fails(ForwardFailure::cut_off, "HTTP/1.1 502 ", [](Peer& peer) { peer.hear(); });
  fails(ForwardFailure::cut_off, "HTTP/1.1 502 ",
        [](Peer& peer) { static_cast<void>(!peer.hear().empty() && peer.say("HTTP/1.1 20")); });
}

TEST(ForwardFailures, bytes_that_are_no_response_are_malformed) {
  fails(ForwardFailure::malformed, "HTTP/1.1 502 ", [](Peer& peer) {
    if (!peer.hear().empty() && peer.say("garbage\r\n\r\n")) peer.until_gone();
  });
}

TEST(ForwardFailures, a_head_that_is_too_long_is_not_malformed) {
  const auto script = [](Peer& peer) {
    if (peer.hear().empty() || !peer.say("HTTP/1.1 200 OK\r\nLong: ")) return;
    const std::string_view part = "................................................................";
    for (int i = 0; i < 4096 / 64; ++i) {
      if (!peer.say(part)) return;
    }
    if (peer.say("\r\n\r\n")) peer.until_gone();
  };
  fails(ForwardFailure::head_too_long, "HTTP/1.1 502 ", script, {.max_head = 4096});
}

TEST(ForwardFailures, silence_is_a_timeout) {
  fails(ForwardFailure::timeout, "HTTP/1.1 504 ", [](Peer& peer) { peer.until_gone(); }, {.first_byte = 30ms});
}

TEST(ForwardFailures, a_connection_that_takes_too_long_is_a_connect_timeout) {
  // A listener with a full backlog lets newcomers wait.
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  CHECK(bind(listener, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0 && listen(listener, 0) == 0);
  socklen_t size = sizeof at;
  getsockname(listener, reinterpret_cast<sockaddr*>(&at), &size);
  int waiting[4];
  for (int& each : waiting) {
    each = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    static_cast<void>(connect(each, reinterpret_cast<const sockaddr*>(&at), sizeof at));
  }
  char url[32];
  fails_at(coir::format(url, "http://127.0.0.1:", ntohs(at.sin_port)), ForwardFailure::connect_timeout, "HTTP/1.1 504 ",
           {.connect = 30ms});
  for (const int each : waiting) close(each);
  close(listener);
}

TEST(ForwardFailures, a_request_that_was_here_before_is_a_loop) {
  through([](Peer&) {}, {.pseudonym = "me"},
          [&](const coir::Address& address, Stage& stage) {
            coir::test::Client client(address);
            expect(client.say("GET / HTTP/1.1\r\nHost: t\r\nVia: 1.1 me\r\n\r\n") && client.hear("HTTP/1.1 508 "));
            says_so(stage, ForwardFailure::loop);
          });
}

TEST(ForwardFailures, servers_that_are_left_alone_are_all_down) {
  through(
      [](Peer& peer) { peer.hear(); },
      [&](const coir::Address& address, Stage& stage) {
        char url[32];
        auto listener = coir::TcpListener::listen(*coir::Address::parse("127.0.0.1:0"));
        const std::string_view nobody = coir::format(url, "http://127.0.0.1:", listener->local_address().port());
        listener->close();
        const coir::http::UpstreamServer two[] = {nobody, nobody};
        auto other = Upstreams::create(two, {.failures = 1, .longest = 100s});
        UpstreamGroup* const group = std::exchange(stage.group, &other->group());
        coir::test::Client client(address);
        expect(client.say(kGet) && client.hear("HTTP/1.1 502 "));
        client.have = 0;
        expect(client.say(kGet) && client.hear("Retry-After: 1\r\n") && heard_by(client).starts_with("HTTP/1.1 503 "));
        const auto& failures = stage.forwarder->counters().failures;
        expect(failures[static_cast<std::size_t>(ForwardFailure::refused)].load() == 1);
        expect(failures[static_cast<std::size_t>(ForwardFailure::all_down)].load() == 1);
        stage.group = group;
      });
}

TEST(ForwardFailures, no_memory_for_a_connection_is_no_room) {
  Heard heard;
  through(keep_head(heard), [&](const coir::Address& address, Stage& stage) {
    coir::test::Client client(address);
    const std::size_t ceiling = coir::account::connections.ceiling();
    // The client's connection is there already.
    expect(client.say("GET ") && until([] { return coir::account::connections.used() != 0; }, soon()));
    coir::account::connections.set_ceiling(coir::account::connections.used());
    expect(client.say("/ HTTP/1.1\r\nHost: t\r\n\r\n") && client.hear("HTTP/1.1 503 "));
    coir::account::connections.set_ceiling(ceiling);
    says_so(stage, ForwardFailure::no_room);
  });
}

TEST(ForwardFailures, content_that_ends_too_early_is_told_too) {
  through(
      [](Peer& peer) {
        static_cast<void>(!peer.hear().empty() && peer.say("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello"));
      },
      [&](const coir::Address& address, Stage& stage) {
        coir::test::Client client(address);
        expect(client.say(kGet) && client.hear("hello"));
        expect(until([&] { return stage.forwarder->counters().cut.load() == 1; }, soon()));
        says_so(stage, ForwardFailure::cut_off);
      });
}

// Behind a while a response goes on without its fiber.
TEST(ForwardFailures, content_that_stalls_or_ends_too_early_without_a_fiber_is_told_too) {
  const auto cuts = [&](ForwardFailure failure, bool hangs) {
    std::atomic<bool> rests = false;
    through(
        [&rests, hangs](Peer& peer) {
          if (peer.hear().empty() || !peer.say("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello")) return;
          if (hangs) return peer.until_gone();
          until([&rests] { return rests.load(); });
        },
        {.idle = hangs ? 40ms : 60s, .rest_after = 1ms},
        [&](const coir::Address& address, Stage& stage) {
          coir::test::Client client(address);
          rests = false;
          expect(client.say(kGet) && client.hear("hello"));
          expect(hangs || until([&] { return stage.forwarder->streams() == 1; }, soon()));
          rests = true;
          expect(until([&] { return stage.forwarder->counters().cut.load() == 1; }, soon()));
          says_so(stage, failure);
          const coir::http::UpstreamMember& server = stage.group->members()[0];
          expect(stage.group->state_of(server).cut == 1 && server.failures == 0);
        });
  };
  cuts(ForwardFailure::timeout, true);
  cuts(ForwardFailure::cut_off, false);
}

TEST(ForwardFailures, each_has_a_word) {
  for (std::size_t i = 0; i < coir::http::kForwardFailures; ++i) {
    CHECK(word_of(static_cast<ForwardFailure>(i))[0] != '\0');
  }
  STRCMP_EQUAL("refused", word_of(ForwardFailure::refused));
  STRCMP_EQUAL("all-down", word_of(ForwardFailure::all_down));
  STRCMP_EQUAL("loop", word_of(ForwardFailure::loop));
}

}  // namespace forward_failures_test
