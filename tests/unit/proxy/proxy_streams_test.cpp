// Event streams, responses that pause and tunnels stay open through a proxy, and rest without a fiber.

#include <CppUTest/TestHarness.h>
#include <coir/pressure.h>
#include <coir/resting_wait.h>
#include <netinet/tcp.h>

#include <atomic>

#include "tests/support/far_end.h"
#include "tests/unit/proxy/gateway.h"

namespace proxy_streams_test {

using namespace coir::test;

namespace {

constexpr std::string_view kEvents =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
constexpr std::string_view kUpgrade =
    "GET /chat HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: "
    "x\r\n\r\n";
constexpr std::string_view kSwitch =
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: y\r\n\r\n";

// Steps has a script go on when the test says so.
struct Steps {
  std::atomic<int> allowed{0};
  void allow(int step) { allowed = step; }
  void await(int step) {
    until([&] { return allowed >= step; }, soon());
  }
};

}  // namespace

TEST_GROUP_BASE(ProxyStreams, Gateway) {  // rests returns once so many exchanges rest with the forwarder.
  bool rests(Stage& stage, std::size_t streams = 1) {
    return until([&] { return stage.forwarder->streams() == streams; }, soon());
  }
};

TEST(ProxyStreams, events_pass_one_by_one) {
  Steps steps;
  through(
      [&](Peer& peer) {
        peer.hear();
        peer.say(kEvents);
        for (int i = 1; i <= 3; ++i) {
          steps.await(i);
          const char piece[] = {'9',  '\r', '\n', 'd', 'a', 't', 'a', ':', ' ', static_cast<char>('0' + i),
                                '\n', '\n', '\r', '\n'};
          peer.say({piece, sizeof piece});
        }
        steps.await(4);
        peer.say("0\r\n\r\n");
        peer.until_gone();
      },
      [&](const coir::Address& address, Stage& stage) {
        steps.allow(0);
        coir::test::Client client(address);
        expect(client.say(kGet) && client.hear("\r\n\r\n") && rests(stage));
        for (int i = 1; i <= 3; ++i) {
          steps.allow(i);
          const char event[] = {'d', 'a', 't', 'a', ':', ' ', static_cast<char>('0' + i), '\n', '\n'};
          expect(client.hear({event, sizeof event}));
        }
        steps.allow(4);
        expect(client.hear("\r\n0\r\n\r\n") && rests(stage, 0));
        expect(stage.forwarder->counters().cut.load() == 0);
      });
}

TEST(ProxyStreams, a_stream_of_http_1_0_ends_with_its_connection) {
  Steps steps;
  through(
      [&](Peer& peer) {
        peer.hear();
        peer.say("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n");
        steps.await(1);
        peer.say("data: 1\n\n");
      },
      [&](const coir::Address& address, Stage& stage) {
        steps.allow(0);
        coir::test::Client client(address);
        expect(client.say("GET / HTTP/1.0\r\n\r\n") && client.hear("\r\n\r\n") && rests(stage));
        steps.allow(1);
        expect(client.hear("\r\n\r\ndata: 1\n\n") && client.hear_the_end());
      });
}

TEST(ProxyStreams, a_stream_that_rests_has_no_fiber_and_no_buffer) {
  through(
      [](Peer& peer) {
        peer.hear();
        peer.say(kEvents);
        peer.until_gone();
      },
      {}, {},
      [&](Server& server, const coir::Address& address, Stage& stage) {
        const std::size_t buffers = coir::account::buffers.used() - coir::Buffer::spare_bytes();
        const std::size_t before = coir::account::streams.used();
        coir::test::Client first(address);
        expect(first.say(kGet) && first.hear("\r\n\r\n") && rests(stage));
        const std::size_t one = coir::account::streams.used() - before;
        expect(one != 0 && one <= 400);
        coir::test::Client more[3] = {coir::test::Client(address), coir::test::Client(address),
                                      coir::test::Client(address)};
        for (coir::test::Client& each : more) expect(each.say(kGet) && each.hear("\r\n\r\n"));
        expect(rests(stage, 4));
        expect(coir::account::streams.used() - before == 4 * one);
        expect(coir::account::buffers.used() - coir::Buffer::spare_bytes() == buffers);
        expect(until([&] { return server.gauges().active == 0; }, soon()));
      });
}

TEST(ProxyStreams, a_response_that_pauses_goes_on_without_a_fiber) {
  for (const bool chunked : {false, true}) {
    Steps steps;
    through(
        [&](Peer& peer) {
          while (!peer.hear().empty()) {
            peer.say(chunked ? "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"
                             : "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc");
            steps.await(1);
            peer.say(chunked ? "3\r\ndef\r\n0\r\n\r\n" : "def");
          }
        },
        {.rest_after = 10ms},
        [&](const coir::Address& address, Stage& stage) {
          steps.allow(0);
          coir::test::Client client(address);
          expect(client.say(kGet) && client.hear("abc") && rests(stage));
          steps.allow(1);
          expect(client.hear(chunked ? "\r\n3\r\ndef\r\n0\r\n\r\n" : "abcdef") && rests(stage, 0));
          expect(stage.forwarder->counters().cut.load() == 0 && stage.forwarder->counters().cancelled.load() == 0);
        });
  }
}

TEST(ProxyStreams, behind_a_response_that_paused_its_connection_is_as_before) {
  Heard heard;
  Steps steps;
  through(
      [&](Peer& peer) {
        for (std::string_view head = peer.hear(); !head.empty(); head = peer.hear()) {
          if (head.starts_with("POST")) {
            heard.keep(peer.hear_content(2));
            peer.say(kHello);
            continue;
          }
          peer.say("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc");
          steps.await(1);
          peer.say("def");
        }
      },
      {.rest_after = 10ms},
      [&](const coir::Address& address, Stage& stage) {
        constexpr std::string_view kPost = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nhi";
        for (const bool early : {false, true}) {
          // Without epoll nobody could tell bytes that nobody reads from further ones: they are dropped.
          if (early && !coir::resting_wait_hears_edges()) continue;
          heard.size = 0;
          steps.allow(0);
          coir::test::Client client(address);
          expect(client.say(kGet) && client.hear("abc") && rests(stage));
          // A request that comes while the response is still under way is not lost either.
          if (early) expect(client.say(kPost));
          steps.allow(1);
          expect(client.hear("abcdef") && (early || client.say(kPost)) && client.hear("hello") && heard.view() == "hi");
          expect(rests(stage, 0));
        }
      });
}

TEST(ProxyStreams, a_response_that_stalls_while_it_rests_is_cut) {
  through(
      [&](Peer& peer) {
        peer.hear();
        peer.say("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nabc");
        peer.until_gone();
      },
      {.idle = 300ms, .rest_after = 10ms},
      [&](const coir::Address& address, Stage& stage) {
        coir::test::Client client(address);
        expect(client.say(kGet) && client.hear("abc") && rests(stage));
        expect(client.hear_the_end() && rests(stage, 0) && stage.forwarder->counters().cut.load() == 1);
      });
}

TEST(ProxyStreams, a_stream_whose_client_reads_no_more_is_left) {
  std::atomic<bool> gone{false};
  through(
      [&](Peer& peer) {
        peer.hear();
        peer.say("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n");
        static const char piece[65536] = {};
        // It says more, and more, until nobody takes it.
        while (send(peer.fd(), piece, sizeof piece, MSG_NOSIGNAL) > 0) {
        }
        gone = true;
      },
      {}, {.write_timeout = 200ms},
      [&](Server&, const coir::Address& address, Stage& stage) {
        gone = false;
        coir::test::Client client(address);
        expect(client.say(kGet) && client.hear("\r\n\r\n"));
        expect(until([&] { return gone.load(); }, soon()) && rests(stage, 0));
      });
}

TEST(ProxyStreams, a_reset_behind_an_end_frees_both_sides_of_a_tunnel) {
  for (const bool by_client : {true, false}) {
    std::atomic<bool> ended{false};
    Steps steps;
    through(
        [&](Peer& peer) {
          peer.hear();
          peer.say(kSwitch);
          if (by_client) {
            // The end of the client's side comes through; what this side does not end goes on.
            char byte;
            ended = ::recv(peer.fd(), &byte, 1, 0) == 0;
            steps.await(1);
            return;
          }
          ::shutdown(peer.fd(), SHUT_WR);
          steps.await(1);
          const linger at_once = {.l_onoff = 1, .l_linger = 0};
          ::setsockopt(peer.fd(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        },
        [&](const coir::Address& address, Stage& stage) {
          // Without epoll nobody waits for what comes behind an end.
          if (!coir::resting_wait_hears_edges()) return;
          ended = false;
          steps.allow(0);
          coir::test::Client client(address);
          expect(client.say(kUpgrade) && client.hear("\r\n\r\n") && rests(stage));
          if (by_client) {
            client.end_its_side();
            expect(until([&] { return ended.load(); }, soon()) && stage.forwarder->streams() == 1);
            client.reset();
            expect(rests(stage, 0));
            steps.allow(1);
          } else {
            expect(client.hear_the_end() && stage.forwarder->streams() == 1);
            steps.allow(1);
            expect(rests(stage, 0));
          }
        });
  }
}

TEST(ProxyStreams, a_stream_that_is_cut_off_is_visible) {
  for (const bool old : {false, true}) {
    Steps steps;
    through(
        [&](Peer& peer) {
          peer.hear();
          peer.say(kEvents);
          peer.say("5\r\nhello\r\n");
          steps.await(1);
        },
        [&](const coir::Address& address, Stage& stage) {
          steps.allow(0);
          coir::test::Client client(address);
          expect(client.say(old ? "GET / HTTP/1.0\r\n\r\n" : kGet) && client.hear("hello") && rests(stage));
          steps.allow(1);
          char rest[64];
          const auto got = client.stream.read(rest, soon());
          if (old) {
            // Nothing but a reset says so.
            expect(!got && !(got.error() == coir::ErrorCode::end_of_stream));
          } else {
            expect((!got || std::string_view(rest, *got) == "\r\n") &&
                   heard_by(client).find("0\r\n\r\n") == std::string_view::npos);
          }
          expect(rests(stage, 0) && stage.forwarder->counters().cut.load() == 1);
        });
  }
}

TEST(ProxyStreams, a_client_that_leaves_a_stream_has_its_upstream_left) {
  for (const bool resets : {false, true}) {
    std::atomic<bool> gone{false};
    through(
        [&](Peer& peer) {
          peer.hear();
          peer.say(kEvents);
          peer.until_gone();
          gone = true;
        },
        [&](const coir::Address& address, Stage& stage) {
          gone = false;
          coir::test::Client client(address);
          expect(client.say(kGet) && client.hear("\r\n\r\n") && rests(stage));
          resets ? client.reset() : client.end_its_side();
          expect(until([&] { return gone.load(); }, soon()) && rests(stage, 0));
        });
  }
}

TEST(ProxyStreams, a_tunnel_passes_bytes_both_ways) {
  Heard heard;
  through(
      [&](Peer& peer) {
        heard.keep(peer.hear());
        peer.say(kSwitch);
        peer.say("first");
        for (std::string_view got = peer.hear_content(4); !got.empty(); got = peer.hear_content(4)) peer.say(got);
      },
      [&](const coir::Address& address, Stage& stage) {
        heard.size = 0;
        coir::test::Client client(address);
        expect(client.say(kUpgrade) && client.hear("HTTP/1.1 101 Switching Protocols\r\n"));
        expect(client.hear("Sec-WebSocket-Accept: y\r\n") && client.hear("Upgrade: websocket\r\n"));
        expect(client.hear("Connection: Upgrade\r\n") && client.hear("\r\n\r\nfirst"));
        expect(heard.has("\r\nUpgrade: websocket\r\n") && heard.has("\r\nConnection: Upgrade\r\n"));
        for (const std::string_view word : {"ping", "pong", "data"}) {
          expect(rests(stage) && client.say(word) && client.hear(word));
        }
        client.end_its_side();
        expect(client.hear_the_end() && rests(stage, 0));
      });
}

// Neither side of an idle tunnel has a deadline: the kernel finds out that one has vanished.
TEST(ProxyStreams, a_tunnels_sockets_are_probed_and_given_up) {
  std::atomic<bool> upstream_is_probed = false;
  Steps steps;
  const auto is_probed = [](int end) {
    return far_option(end, SOL_SOCKET, SO_KEEPALIVE) == 1 && far_option(end, IPPROTO_TCP, TCP_KEEPIDLE) == 60 &&
           far_option(end, IPPROTO_TCP, TCP_KEEPINTVL) == 15 && far_option(end, IPPROTO_TCP, TCP_KEEPCNT) == 4 &&
           far_option(end, IPPROTO_TCP, TCP_USER_TIMEOUT) == 120'000;
  };
  through(
      [&](Peer& peer) {
        static_cast<void>(peer.hear());
        peer.say(kSwitch);
        steps.await(1);
        upstream_is_probed = until([&] { return is_probed(peer.fd()); }, soon());
        peer.say("looked");
        static_cast<void>(peer.hear_content(1));
      },
      [&](const coir::Address& address, Stage& stage) {
        steps.allow(0);
        upstream_is_probed = false;
        coir::test::Client client(address);
        expect(client.say(kUpgrade) && client.hear("\r\n\r\n") && rests(stage));
        expect(until([&] { return is_probed(client.stream.fd()); }, soon()));
        steps.allow(1);
        expect(client.hear("looked") && upstream_is_probed);
        client.end_its_side();
        expect(client.hear_the_end() && rests(stage, 0));
      });
}

TEST(ProxyStreams, nothing_behind_the_head_is_sent_before_the_upstream_has_switched) {
  Heard heard;
  Steps steps;
  for (const bool switches : {true, false}) {
    through(
        [&](Peer& peer) {
          if (peer.hear().empty()) return;
          steps.await(1);
          char early[16];
          if (recv(peer.fd(), early, sizeof early, MSG_DONTWAIT) > 0) heard.keep("early");
          peer.say(switches ? kSwitch : "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
          if (switches) heard.keep(peer.hear_content(5));
          if (switches) peer.say("thanks");
          if (!switches) heard.keep(peer.hear());
        },
        [&](const coir::Address& address, Stage&) {
          heard.size = 0;
          steps.allow(0);
          coir::test::Client client(address);
          expect(client.say(kUpgrade) && client.say("bytes"));
          steps.allow(1);
          expect(client.hear(switches ? "thanks" : "\r\n\r\nno"));
          expect(heard.view() == (switches ? "bytes" : ""));
          client.reset();
        });
  }
}

TEST(ProxyStreams, an_upgrade_to_http_2_is_not_asked_for) {
  for (const std::string_view token : {"h2c", "HTTP/2.0", "websocket, h2c", "TLS/1.2"}) {
    Heard heard;
    char request[160];
    snprintf(request, sizeof request, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n",
             token.data());
    through(keep_head(heard), [&](const coir::Address& address, Stage&) {
      heard.size = 0;
      coir::test::Client client(address);
      expect(client.say(request) && client.hear("hello") && !heard.has("Upgrade"));
    });
  }
}

TEST(ProxyStreams, an_upgrade_by_several_fields_is_not_asked_for) {
  constexpr std::string_view kSeveral =
      "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nUpgrade: x\r\n"
      "Upgrade: websocket\r\n\r\n";
  Heard heard;
  through(keep_head(heard), [&](const coir::Address& address, Stage&) {
    heard.size = 0;
    coir::test::Client client(address);
    expect(client.say(kSeveral) && client.hear("hello") && !heard.has("Upgrade"));
  });
}

TEST(ProxyStreams, an_upstream_that_switches_to_http_2_is_502) {
  constexpr std::string_view kAnswers[] = {
      "HTTP/1.1 101 Go\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
      "HTTP/1.1 101 Go\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nUpgrade: h2c\r\n\r\n"};
  for (const std::string_view answer : kAnswers) {
    Heard heard;
    through(keep_head(heard, answer), [&](const coir::Address& address, Stage&) {
      coir::test::Client client(address);
      expect(client.say(kUpgrade) && client.hear("HTTP/1.1 502 "));
    });
  }
}

TEST(ProxyStreams, much_passes_through_a_tunnel_both_ways_at_once) {
  constexpr std::size_t kBytes = 3'000'000;
  through(
      [](Peer& peer) {
        peer.hear();
        peer.say(kSwitch);
        // An echo that never holds more than a piece.
        for (std::string_view got = peer.hear_content(4096); !got.empty(); got = peer.hear_content(4096)) {
          if (!peer.say(got)) return;
        }
      },
      [&](const coir::Address& address, Stage&) {
        coir::test::Client client(address);
        expect(client.say(kUpgrade) && client.hear("\r\n\r\n"));
        std::atomic<std::size_t> right{0};
        const auto sender = coir::spawn([&] {
          char piece[1000];
          for (std::size_t at = 0; at < kBytes; at += sizeof piece) {
            for (std::size_t i = 0; i < sizeof piece; ++i) piece[i] = static_cast<char>((at + i) % 251);
            if (!client.stream.write({piece, sizeof piece}, soon())) return;
          }
          client.end_its_side();
        });
        expect(sender.started());
        char got[2048];
        for (std::size_t at = 0; at < kBytes;) {
          const auto more = client.stream.read(got, soon());
          if (!more) break;
          for (std::size_t i = 0; i < *more; ++i) right += got[i] == static_cast<char>((at + i) % 251);
          at += *more;
        }
        expect(right == kBytes && client.hear_the_end());
      });
}

// The other direction moves all the time.
TEST(ProxyStreams, a_tunnel_is_cut_of_which_a_side_takes_nothing) {
  static const char piece[65536] = {};
  for (const bool is_upstream : {true, false}) {
    const auto script = [&](Peer& peer) {
      peer.hear();
      peer.say(kSwitch);
      while (peer.say(is_upstream ? "x" : std::string_view(piece, sizeof piece))) {
        if (is_upstream) ::poll(nullptr, 0, 2);
      }
    };
    through(script, {}, {.write_timeout = 200ms}, [&](Server&, const coir::Address& address, Stage& stage) {
      coir::test::Client client(address);
      expect(client.say(kUpgrade) && client.hear("\r\n\r\n"));
      const coir::Deadline late = soon();
      while (!late.passed() && client.say(is_upstream ? std::string_view(piece, sizeof piece) : "x")) {
        if (!is_upstream) static_cast<void>(coir::sleep(2ms));
      }
      expect(!late.passed() && rests(stage, 0));
      const auto& counters = stage.forwarder->counters();
      expect((is_upstream ? counters.silent : counters.cancelled).load() == 1);
    });
  }
}

TEST(ProxyStreams, a_slow_client_of_a_stream_costs_one_buffer) {
  std::atomic<bool> held_back{false};
  through(
      [&](Peer& peer) {
        if (peer.hear().empty()) return;
        peer.say("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n");
        static const char piece[65536] = {};
        for (pollfd entry{.fd = peer.fd(), .events = POLLOUT, .revents = 0}; poll(&entry, 1, 300) == 1;) {
          if (send(peer.fd(), piece, sizeof piece, MSG_NOSIGNAL | MSG_DONTWAIT) < 0) break;
        }
        held_back = true;
        peer.until_gone();
      },
      {}, {.write_timeout = 60s},
      [&](Server&, const coir::Address& address, Stage& stage) {
        held_back = false;
        coir::test::Client client(address);
        expect(client.say(kGet) && client.hear("\r\n\r\n"));
        expect(until([&] { return held_back.load(); }, soon()));
        expect(coir::account::buffers.used() - coir::Buffer::spare_bytes() <= 128 * 1024);
        client.reset();
        expect(rests(stage, 0));
      });
}

TEST(ProxyStreams, a_server_that_stops_ends_streams_and_tunnels) {
  std::atomic<int> gone{0};
  through(
      [&](Peer& peer) {
        peer.say(peer.hear().find("Upgrade") != std::string_view::npos ? kSwitch : kEvents);
        peer.until_gone();
        ++gone;
      },
      {}, {},
      [&](Server& server, const coir::Address& address, Stage& stage) {
        gone = 0;
        coir::test::Client stream(address), tunnel(address);
        expect(stream.say(kGet) && stream.hear("\r\n\r\n") && tunnel.say(kUpgrade) && tunnel.hear("\r\n\r\n"));
        expect(rests(stage, 2));
        server.begin_stop();
        expect(until([&] { return gone == 2; }, soon()) && stream.hear_the_end() && tunnel.hear_the_end());
      });
}

TEST(ProxyStreams, streams_are_evicted_behind_idle_connections) {
  through(
      [](Peer& peer) {
        peer.hear();
        peer.say(kEvents);
        peer.until_gone();
      },
      {}, {.evict_after = 0ms},
      [&](Server& server, const coir::Address& address, Stage& stage) {
        coir::test::Client stream(address);
        expect(stream.say(kGet) && stream.hear("\r\n\r\n") && rests(stage));
        expect(until([&] { return server.gauges().active == 0; }, soon()));
        // It counts as silent from the clock's next tick on.
        expect(until(
            [&] {
              coir::Pressure::make_room(coir::account::connections, SIZE_MAX);
              return stage.forwarder->streams() == 0;
            },
            soon()));
      });
}

// Such a client takes a clean end of its connection for the end of the content.
TEST(ProxyStreams, a_client_of_http_1_0_is_reset_if_its_response_ends_early) {
  for (const bool is_evicted : {false, true}) {
    through(
        [](Peer& peer) {
          peer.hear();
          peer.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
          peer.until_gone();
        },
        {.rest_after = 10ms}, {.evict_after = 0ms},
        [&](Server& server, const coir::Address& address, Stage& stage) {
          coir::test::Client client(address);
          expect(client.say("GET / HTTP/1.0\r\n\r\n") && client.hear("hello") && rests(stage));
          expect(until([&] { return server.gauges().active == 0; }, soon()));
          if (!is_evicted) client.end_its_side();
          expect(until(
              [&] {
                if (is_evicted) coir::Pressure::make_room(coir::account::connections, SIZE_MAX);
                return stage.forwarder->streams() == 0;
              },
              soon()));
          expect(!client.hear_the_end());
        });
  }
}

TEST(ProxyStreams, a_request_that_came_with_the_one_before_is_answered_behind_its_pause) {
  Steps steps;
  through(
      [&](Peer& peer) {
        while (!peer.hear().empty()) {
          peer.say("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc");
          steps.await(1);
          peer.say("def");
        }
      },
      {.rest_after = 1ms},
      [&](const coir::Address& address, Stage& stage) {
        steps.allow(0);
        coir::test::Client client(address);
        expect(client.say("GET / HTTP/1.1\r\nHost: t\r\n\r\nGET / HTTP/1.1\r\nHost: t\r\n\r\n") && client.hear("abc"));
        // A response that rested would leave nobody to answer the second request.
        static_cast<void>(until([&] { return stage.forwarder->streams() != 0; }, coir::Deadline::after(50ms)));
        steps.allow(1);
        expect(client.hear("abcdefHTTP/1.1 200 OK"));
      });
}

// A close over unread bytes would reset the connection, and the kernel would drop what the client has not had. A client that
// does not end its side is left all the same.
TEST(ProxyStreams, a_response_that_paused_ends_whole_in_spite_of_bytes_behind_its_request) {
  Steps steps;
  through(
      [&](Peer& peer) {
        peer.hear();
        peer.say("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc");
        steps.await(1);
        peer.say("def");
      },
      {.rest_after = 1ms}, {.linger_timeout = 200ms},
      [&](Server& server, const coir::Address& address, Stage& stage) {
        steps.allow(0);
        coir::test::Client client(address);
        expect(client.say("GET / HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n") && client.hear("abc"));
        expect(rests(stage) && client.say("\r\n"));
        steps.allow(1);
        expect(client.hear("abcdef") && client.hear_the_end());
        expect(until([&] { return server.gauges().open == 0; }, soon()));
      });
}

}  // namespace proxy_streams_test
