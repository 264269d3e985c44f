// The rules of a route: its demands on exchanges, and its changes to them.

#include <CppUTest/TestHarness.h>
#include <coir/http/proxy_table.h>

#include <atomic>

#include "proxy/routes/proxy_state.h"
#include "tests/unit/proxy/gateway.h"

namespace route_rules_test {

using namespace coir::test;
using coir::Deadline;
using coir::http::ForwardFailure;
using coir::http::Proxy;
using coir::http::ProxyOptions;
using coir::http::ProxyTable;

TEST_GROUP_BASE(RouteRules, HandlerServer) {
  static inline Proxy* proxy_ = nullptr;

  // beside runs `visit` with a server whose handler is a proxy of one route, with these words, to servers that play the
  // script.
  template <class Visit>
  void beside(std::string_view words, ScriptedServer::Script script, Visit visit, ProxyOptions gate = {},
              std::size_t servers = 1) {
    ServerOptions options;
    look_often(options);
    options.handler = [](Exchange& exchange) {
      if (!proxy_->serve(exchange)) exchange.respond_status(404);
    };
    std::optional<ScriptedServer> scripted[2];
    std::optional<Proxy> proxy;
    serving(options, [&](Server& server, const coir::Address& address, Seen&) {
      for (std::size_t i = 0; i < servers; ++i) scripted[i].emplace(script);
      proxy.emplace(gate);
      proxy_ = &*proxy;
      auto table = ProxyTable::create();
      char line[512];
      expect(table
                 ->add(coir::format(line, "/ ", scripted[0]->url(""), servers == 2 ? "," : "",
                                    servers == 2 ? scripted[1]->url("") : "", " ", words))
                 .value_or(false));
      expect(proxy->apply(*table).has_value());
      visit(address, *proxy);
      expect(server.stop(soon()).has_value());
      proxy.reset();
      for (auto& each : scripted) each.reset();
    });
  }
  // asks has a client say something and hear something, on a connection of its own.
  bool asks(const coir::Address& address, std::string_view request, std::string_view answer) {
    coir::test::Client client(address);
    return client.say(request) && client.hear(answer);
  }
};

TEST(RouteRules, a_client_that_asks_too_often_is_429) {
  beside("rate=1,3", answer_all(kHello), [&](const coir::Address& address, Proxy& proxy) {
    coir::test::Client client(address);
    int answered = 0;
    for (int i = 0; i < 20; ++i) {
      client.have = 0;
      expect(client.say(kGet) && client.hear("\r\n\r\n"));
      const bool well = heard_by(client).starts_with("HTTP/1.1 200 ");
      answered += well;
      if (well) {
        expect(client.hear("hello"));
      } else {
        expect(heard_by(client).starts_with("HTTP/1.1 429 ") && client.hear("Retry-After: 1\r\n"));
        // On a connection of its own it is the same client.
        expect(client.hear("\r\n\r\n") && asks(address, kGet, "HTTP/1.1 "));
        break;
      }
    }
    // A slow machine refills the bucket meanwhile.
    expect(answered >= 3 && proxy.state()->counted()->counters().limited.load() >= 1);
  });
}

TEST(RouteRules, clients_behind_a_trusted_proxy_have_a_rate_each) {
  beside("rate=1 trust=127.0.0.0/8", answer_all(kHello), [&](const coir::Address& address, Proxy&) {
    for (int i = 1; i <= 20; ++i) {
      char request[128];
      expect(asks(address,
                  coir::format(request, "GET / HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 9.9.9.", i, "\r\n\r\n"),
                  "HTTP/1.1 200 "));
    }
  });
  beside("rate=1,2", answer_all(kHello), [&](const coir::Address& address, Proxy& proxy) {
    // A stranger's fields are not believed.
    for (int i = 1; i <= 20; ++i) {
      char request[128];
      expect(asks(address,
                  coir::format(request, "GET / HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 9.9.9.", i, "\r\n\r\n"),
                  "HTTP/1.1 "));
    }
    expect(proxy.state()->counted()->counters().limited.load() != 0);
  });
}

TEST(RouteRules, fields_of_a_trusted_peer_are_added_to) {
  for (const bool trusted : {true, false}) {
    Heard heard;
    beside(
        trusted ? "trust=127.0.0.1" : "trust=10.0.0.0/8", keep_head(heard), [&](const coir::Address& address, Proxy&) {
          heard.size = 0;
          expect(
              asks(address,
                   "GET / HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 9.9.9.9\r\nX-Forwarded-Proto: https\r\n\r\n",
                   "hello"));
          expect(heard.has(trusted ? "X-Forwarded-For: 9.9.9.9, 127.0.0.1\r\n" : "X-Forwarded-For: 127.0.0.1\r\n"));
          expect(heard.has(trusted ? "X-Forwarded-Proto: https\r\n" : "X-Forwarded-Proto: http\r\n"));
        });
  }
}

TEST(RouteRules, content_over_the_limit_is_413) {
  Heard heard;
  beside(
      "max-body=5",
      [&](Peer& peer) {
        heard.keep(peer.hear());
        peer.until_gone();
      },
      [&](const coir::Address& address, Proxy&) {
        heard.size = 0;
        expect(asks(address, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 6\r\n\r\nabcdef", "HTTP/1.1 413 "));
        expect(asks(address, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 6\r\nExpect: 100-continue\r\n\r\n",
                    "HTTP/1.1 413 "));
        expect(heard.size == 0);
        expect(asks(
            address,
            "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n",
            "HTTP/1.1 413 "));
      });
  beside(
      "max-body=5",
      [](Peer& peer) {
        if (peer.hear().empty()) return;
        peer.hear_content(5);
        peer.say("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello");
        peer.until_gone();
      },
      [&](const coir::Address& address, Proxy&) {
        expect(asks(address, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nabcde", "hello"));
        expect(asks(address,
                    "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n0\r\n\r\n",
                    "hello"));
      });
}

TEST(RouteRules, a_request_has_an_id_of_its_own) {
  Heard heard;
  const auto id_of = [&] {
    const std::size_t at = heard.view().rfind("X-Request-ID: ");
    if (at == std::string_view::npos) return std::string_view();
    const std::string_view rest = heard.view().substr(at + 14);
    return rest.substr(0, rest.find('\r'));
  };
  constexpr std::string_view kGiven = "GET / HTTP/1.1\r\nHost: localhost\r\nX-Request-ID: given-1\r\n\r\n";
  for (const bool trusted : {false, true}) {
    beside(trusted ? "request-id trust=127.0.0.1" : "request-id", keep_head(heard),
           [&](const coir::Address& address, Proxy&) {
             heard.size = 0;
             expect(asks(address, kGet, "hello"));
             char first[16] = {};
             expect(id_of().size() == sizeof first);
             id_of().copy(first, sizeof first);
             expect(asks(address, kGet, "hello"));
             expect(id_of().size() == 16 && id_of() != std::string_view(first, sizeof first));
             expect(asks(address, kGiven, "hello"));
             expect((id_of() == "given-1") == trusted && heard.count("X-Request-ID") == 3);
             // Two, or one that is none, are replaced.
             expect(asks(address, "GET / HTTP/1.1\r\nHost: localhost\r\nX-Request-ID: a\r\nX-Request-ID: b\r\n\r\n",
                         "hello"));
             expect(id_of().size() == 16);
             expect(asks(address, "GET / HTTP/1.1\r\nHost: localhost\r\nX-Request-ID: a b\r\n\r\n", "hello"));
             expect(id_of().size() == 16);
           });
  }
  beside("", keep_head(heard), [&](const coir::Address& address, Proxy&) {
    heard.size = 0;
    expect(asks(address, kGiven, "hello") && id_of() == "given-1");
    expect(asks(address, kGet, "hello") && heard.count("X-Request-ID") == 1);
  });
}

TEST(RouteRules, a_gate_decides_by_the_name) {
  const ProxyOptions gate{.admits = [](Exchange& exchange, std::string_view name) {
    if (name == "file" && !exchange.request().header("Authorization").empty()) return true;
    exchange.respond_status(401, "WWW-Authenticate: Basic realm=\"x\"\r\n");
    return false;
  }};
  Heard heard;
  beside(
      "auth=file", keep_head(heard),
      [&](const coir::Address& address, Proxy& proxy) {
        heard.size = 0;
        expect(asks(address, kGet, "HTTP/1.1 401 ") && heard.size == 0);
        expect(asks(address, "GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: x\r\n\r\n", "hello"));
        Proxy other;
        auto table = ProxyTable::create();
        expect(table->add("/ http://a auth=file").value_or(false));
        const auto applied = other.apply(*table);
        expect(!applied && applied.error().error == coir::ErrorCode::unsupported && proxy.state()->view().routes == 1);
      },
      gate);
}

TEST(RouteRules, a_client_is_always_sent_to_the_same_server) {
  std::atomic<int> asked[2] = {0, 0};
  std::atomic<int> ports[2] = {0, 0};
  beside(
      "balance=client trust=127.0.0.1",
      [&](Peer& peer) {
        sockaddr_in at{};
        socklen_t size = sizeof at;
        getsockname(peer.fd(), reinterpret_cast<sockaddr*>(&at), &size);
        int none = 0;
        const bool first = ports[0].compare_exchange_strong(none, at.sin_port) || ports[0] == at.sin_port;
        while (!peer.hear().empty()) {
          ++asked[first ? 0 : 1];
          if (!peer.say(kHello)) return;
        }
      },
      [&](const coir::Address& address, Proxy&) {
        ports[0] = 0;
        bool both[2] = {false, false};
        for (int client = 1; client <= 32; ++client) {
          asked[0] = asked[1] = 0;
          char request[128];
          for (int i = 0; i < 3; ++i) {
            expect(asks(address,
                        coir::format(request, "GET / HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 9.9.", client,
                                     ".1\r\n\r\n"),
                        "hello"));
          }
          expect((asked[0] == 3 && asked[1] == 0) || (asked[0] == 0 && asked[1] == 3));
          both[asked[0] == 0 ? 1 : 0] = true;
        }
        expect(both[0] && both[1]);
      },
      {}, 2);
}

TEST(RouteRules, a_deadline_of_the_route_is_kept) {
  beside(
      "first-byte=30ms", [](Peer& peer) { peer.until_gone(); },
      [&](const coir::Address& address, Proxy& proxy) {
        expect(asks(address, kGet, "HTTP/1.1 504 ") && proxy.state()->counted()->counters().timed_out.load() == 1);
      });
  beside(
      "idle=30ms",
      [](Peer& peer) {
        if (peer.hear().empty()) return;
        peer.say("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello");
        peer.until_gone();
      },
      [&](const coir::Address& address, Proxy&) {
        coir::test::Client client(address);
        expect(client.say(kGet) && client.hear("hello"));
      });
}

TEST(RouteRules, a_stream_and_a_tunnel_that_are_silent_are_cut) {
  beside(
      "rest-idle=100ms",
      [&](Peer& peer) {
        const std::string_view head = peer.hear();
        if (head.empty()) return;
        const bool tunnel = head.find("Upgrade") != std::string_view::npos;
        peer.say(tunnel ? "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"
                        : "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n");
        peer.until_gone();
      },
      [&](const coir::Address& address, Proxy& proxy) {
        coir::test::Client stream(address), tunnel(address);
        expect(stream.say(kGet) && stream.hear("\r\n\r\n"));
        expect(tunnel.say("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n") &&
               tunnel.hear("101 "));
        expect(until([&] { return proxy.state()->counted()->counters().silent.load() == 2; }, soon()));
        expect(tunnel.hear_the_end() && stream.hear_the_end());
        // A client hears the end a moment before its pair is gone.
        expect(until([&] { return proxy.state()->view().streams == 0; }, soon()));
        // An end in good order is no last chunk.
        expect(heard_by(stream).find("0\r\n\r\n") == std::string_view::npos &&
               proxy.state()->counted()->counters().cut.load() == 0);
      });
}

TEST(RouteRules, a_stream_that_says_something_in_time_is_not_cut) {
  std::atomic<bool> in_time{true};
  beside(
      "rest-idle=200ms",
      [&](Peer& peer) {
        if (peer.hear().empty()) return;
        peer.say("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n");
        for (int i = 0; i < 10; ++i) {
          const Deadline late = Deadline::after(100ms);
          usleep(40'000);
          peer.say(": \n");
          if (late.passed()) in_time = false;
        }
        peer.say("data: end\n\n");
        peer.until_gone();
      },
      [&](const coir::Address& address, Proxy& proxy) {
        in_time = true;
        coir::test::Client stream(address);
        expect(stream.say(kGet) && stream.hear("\r\n\r\n"));
        // A machine that is busy for so long proves nothing.
        expect(stream.hear("data: end\n\n") || !in_time);
        expect(proxy.state()->counted()->counters().silent.load() == 0 || !in_time);
      });
}

}  // namespace route_rules_test
