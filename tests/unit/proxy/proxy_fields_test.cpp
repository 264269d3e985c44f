// How a proxy changes the fields of requests and responses.

#include <CppUTest/TestHarness.h>

#include "tests/unit/proxy/gateway.h"

namespace proxy_fields_test {

using namespace coir::test;
using coir::http::RequestRules;

TEST_GROUP_BASE(ProxyFields, Gateway) {
  // asked makes a request and checks what the upstream has heard.
  template <class Check>
  void asked(std::string_view request, const ForwardRules& rules, const RequestRules& own, Check check) {
    Heard heard;
    through(keep_head(heard), rules, [&](const coir::Address& address, Stage& stage) {
      stage.own = own;
      heard.size = 0;
      coir::test::Client client(address);
      expect(client.say(request) && client.hear("hello"));
      check(heard);
    });
  }
  template <class Check>
  void asked(std::string_view request, const ForwardRules& rules, Check check) {
    asked(request, rules, {}, check);
  }
  template <class Check>
  void asked(std::string_view request, Check check) {
    asked(request, {}, {}, check);
  }
  // answered makes a request of that head and checks what the client hears.
  template <class Check>
  void answered(std::string_view answer, std::string_view until, Check check) {
    Heard heard;
    through(keep_head(heard, answer), [&](const coir::Address& address, Stage&) {
      coir::test::Client client(address);
      expect(client.say(kGet) && client.hear(until));
      check(heard_by(client));
    });
  }
  // refused makes a request that no upstream may see.
  void refused(std::string_view request, std::string_view status) {
    Heard heard;
    through(keep_head(heard), [&](const coir::Address& address, Stage&) {
      coir::test::Client client(address);
      expect(client.say(request) && client.hear(status));
      expect(heard.size == 0);
    });
  }
};

TEST(ProxyFields, request_and_response_pass) {
  Heard heard;
  through(keep_head(heard), [&](const coir::Address& address, Stage& stage) {
    heard.size = 0;
    coir::test::Client client(address);
    expect(client.say("GET /a%20b?c=d HTTP/1.1\r\nHost: board.example:8080\r\nX-Device: 7\r\n\r\n"));
    expect(client.hear("hello"));
    expect(heard.view().starts_with("GET /a%20b?c=d HTTP/1.1\r\nHost: board.example:8080\r\n"));
    expect(heard.has("\r\nX-Device: 7\r\n"));
    expect(heard_by(client).starts_with("HTTP/1.1 200 OK\r\n"));
    expect(heard_by(client).find("\r\nX-Name: board\r\n") != std::string_view::npos);
    expect(heard_by(client).find("\r\nContent-Length: 5\r\n") != std::string_view::npos);
    expect(stage.forwarder->counters().forwarded.load() == 1);
  });
}

TEST(ProxyFields, an_absolute_target_is_sent_as_a_path) {
  asked("GET http://other.example/x?y HTTP/1.1\r\nHost: t\r\n\r\n",
        [&](const Heard& heard) { expect(heard.view().starts_with("GET /x?y HTTP/1.1\r\nHost: other.example\r\n")); });
}

TEST(ProxyFields, host_is_the_configured_one) {
  asked("GET / HTTP/1.1\r\nHost: t\r\n\r\n", {.host = "inner:1234"}, [&](const Heard& heard) {
    expect(heard.has("\r\nHost: inner:1234\r\n") && heard.count("Host: ") == 2);
    expect(heard.has("\r\nX-Forwarded-Host: t\r\n"));
  });
}

TEST(ProxyFields, a_base_of_the_rules_replaces_the_begin_of_the_path) {
  constexpr std::string_view kRequest = "GET /outer/x?y HTTP/1.1\r\nHost: t\r\n\r\n";
  asked(kRequest, {}, {.replaced = 6, .base = "/inner"},
        [&](const Heard& heard) { expect(heard.view().starts_with("GET /inner/x?y HTTP/1.1\r\n")); });
  asked(kRequest, {}, {.joins = true, .replaced = 7, .base = "/inner"},
        [&](const Heard& heard) { expect(heard.view().starts_with("GET /inner/x?y HTTP/1.1\r\n")); });
  // A base of a slash alone, in front of a rest that begins with one.
  asked(kRequest, {}, {.replaced = 6},
        [&](const Heard& heard) { expect(heard.view().starts_with("GET /x?y HTTP/1.1\r\n")); });
}

TEST(ProxyFields, fields_of_the_hop_stay_behind) {
  asked(
      "GET / HTTP/1.1\r\nHost: t\r\nConnection: keep-alive, X-Hop, X-Other\r\nKeep-Alive: timeout=5\r\n"
      "X-Hop: 1\r\nx-other: 2\r\nProxy-Connection: keep-alive\r\nProxy-Authorization: Basic eA==\r\n"
      "TE: gzip, deflate\r\nUpgrade: h2c\r\nProxy: http://evil/\r\nHTTP2-Settings: AAMAAABk\r\nX-Stays: 3\r\n\r\n",
      [&](const Heard& heard) {
        for (const std::string_view gone :
             {"X-Hop", "x-other", "Keep-Alive", "Proxy-", "TE:", "Upgrade", "Proxy:", "HTTP2", "Connection:"}) {
          expect(!heard.has(gone));
        }
        expect(heard.has("\r\nX-Stays: 3\r\n"));
      });
}

TEST(ProxyFields, connection_cannot_name_what_says_where_to_who_and_how_long) {
  asked(
      "POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close, Host, Content-Length, X-Forwarded-For, "
      "Authorization\r\n"
      "Authorization: Bearer x\r\nContent-Length: 0\r\n\r\n",
      [&](const Heard& heard) {
        expect(heard.has("\r\nHost: localhost\r\n") && heard.has("\r\nContent-Length: 0\r\n"));
        expect(heard.has("\r\nAuthorization: Bearer x\r\n") && heard.has("\r\nX-Forwarded-For: 127.0.0.1\r\n"));
      });
}

TEST(ProxyFields, te_keeps_trailers_alone) {
  asked("GET / HTTP/1.1\r\nHost: t\r\nTE: gzip, trailers;q=0.5, trailers\r\nConnection: TE\r\n\r\n",
        [&](const Heard& heard) { expect(heard.has("\r\nTE: trailers\r\nConnection: TE\r\n")); });
}

TEST(ProxyFields, forwarded_fields_of_a_stranger_are_replaced) {
  asked(
      "GET / HTTP/1.1\r\nHost: t\r\nX-Forwarded-For: 1.2.3.4\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: evil\r\n"
      "X-Forwarded-Port: 1\r\nX-Real-IP: 1.2.3.4\r\nForwarded: for=1.2.3.4\r\n\r\n",
      {.sends_forwarded = true}, [&](const Heard& heard) {
        expect(heard.has("\r\nX-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: t\r\n"));
        expect(heard.has("\r\nForwarded: for=127.0.0.1;host=\"t\";proto=http\r\n"));
        expect(!heard.has("1.2.3.4") && !heard.has("evil") && !heard.has("Port"));
      });
}

TEST(ProxyFields, forwarded_fields_of_a_trusted_peer_are_added_to) {
  asked(
      "GET / HTTP/1.1\r\nHost: t\r\nX-Forwarded-For: 1.2.3.4\r\nX-Forwarded-For: 5.6.7.8\r\nX-Forwarded-Proto: "
      "https\r\n"
      "X-Forwarded-Host: outer\r\nForwarded: for=1.2.3.4\r\nX-Forwarded-Port: 443\r\n\r\n",
      {.sends_forwarded = true}, {.trusts_peer = true}, [&](const Heard& heard) {
        expect(heard.has("\r\nX-Forwarded-For: 1.2.3.4, 5.6.7.8, 127.0.0.1\r\n"));
        expect(heard.has("\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: outer\r\n"));
        expect(heard.has("\r\nForwarded: for=1.2.3.4, for=127.0.0.1;"));
        expect(heard.has("\r\nX-Forwarded-Port: 443\r\n"));
      });
}

TEST(ProxyFields, twins_with_underscores_are_refused) {
  for (const std::string_view name : {"X_Forwarded_For", "Content_Length", "X-Forwarded_Proto", "transfer_encoding"}) {
    char request[128];
    const int size = snprintf(request, sizeof request, "GET / HTTP/1.1\r\nHost: t\r\n%s: 1\r\n\r\n", name.data());
    refused({request, static_cast<std::size_t>(size)}, "HTTP/1.1 400 ");
  }
  refused("GET / HTTP/1.1\r\nHost: t\r\nX-User: a\r\nX_User: b\r\n\r\n", "HTTP/1.1 400 ");
}

TEST(ProxyFields, an_underscore_without_a_twin_passes) {
  asked("GET / HTTP/1.1\r\nHost: t\r\nMy_Field: 1\r\n\r\n",
        [&](const Heard& heard) { expect(heard.has("\r\nMy_Field: 1\r\n")); });
}

TEST(ProxyFields, via_is_added_to_and_a_loop_is_found) {
  asked("GET / HTTP/1.1\r\nHost: t\r\nVia: 1.0 other\r\n\r\n", {.pseudonym = "gate"},
        [&](const Heard& heard) { expect(heard.has("\r\nVia: 1.0 other\r\n") && heard.has("\r\nVia: 1.1 gate\r\n")); });
  Heard heard;
  through(keep_head(heard), {.pseudonym = "gate"}, [&](const coir::Address& address, Stage& stage) {
    coir::test::Client client(address);
    expect(client.say("GET / HTTP/1.1\r\nHost: t\r\nVia: 1.1 a, 1.1 gate (coir)\r\n\r\n"));
    expect(client.hear("HTTP/1.1 508 Loop Detected\r\n"));
    expect(heard.size == 0 && stage.forwarder->counters().loops.load() == 1);
  });
}

TEST(ProxyFields, two_proxies_on_one_way_are_no_loop) {
  asked("GET / HTTP/1.1\r\nHost: t\r\nVia: 1.1 coir-aaaaaaaa\r\n\r\n",
        [&](const Heard& heard) { expect(heard.count("Via: 1.1 coir-") == 2); });
}

TEST(ProxyFields, lines_of_the_rules_replace_the_clients) {
  static constexpr std::string_view kDrops[] = {"X-User", "Cookie"};
  asked("GET / HTTP/1.1\r\nHost: t\r\nX-User: evil\r\nCookie: a=b\r\nX-Stays: 1\r\n\r\n",
        {.request_lines = "X-User: anna\r\n", .request_drops = kDrops}, [&](const Heard& heard) {
          expect(heard.has("\r\nX-User: anna\r\n") && heard.has("\r\nX-Stays: 1\r\n"));
          expect(!heard.has("evil") && !heard.has("Cookie"));
        });
}

TEST(ProxyFields, fields_of_a_response_pass_but_for_the_hops) {
  answered(
      "HTTP/1.1 404 Oh Dear\r\nSet-Cookie: a=b, c\r\nSet-Cookie: d=e\r\nConnection: X-Hop\r\nX-Hop: 1\r\n"
      "Keep-Alive: timeout=5\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nServer: inner\r\nTransfer-Encoding: chunked\r\n"
      "\r\n5\r\nhello\r\n0\r\n\r\n",
      "\r\n0\r\n\r\n", [&](std::string_view heard) {
        const auto has = [&](std::string_view text) { return heard.find(text) != heard.npos; };
        expect(heard.starts_with("HTTP/1.1 404 Not Found\r\n"));
        expect(has("\r\nSet-Cookie: a=b, c\r\nSet-Cookie: d=e\r\n") && has("\r\nServer: inner\r\n"));
        expect(!has("X-Hop") && !has("Keep-Alive") && !has("1970"));
        expect(has("\r\nTransfer-Encoding: chunked\r\n") && has("\r\n\r\n5\r\nhello\r\n0\r\n\r\n"));
      });
}

TEST(ProxyFields, early_hints_pass_and_a_100_nobody_asked_for_does_not) {
  answered(
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n"
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
      "hello", [&](std::string_view heard) {
        expect(heard.starts_with("HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\nHTTP/1.1 200 OK\r\n"));
      });
}

TEST(ProxyFields, a_client_of_http_1_0_is_sent_no_hints) {
  Heard heard;
  through(keep_head(heard, "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
          [&](const coir::Address& address, Stage&) {
            heard.size = 0;
            coir::test::Client client(address);
            expect(client.say("GET / HTTP/1.0\r\n\r\n") && client.hear("hello"));
            expect(heard_by(client).starts_with("HTTP/1.1 200 OK\r\n"));
            expect(heard.has("\r\nHost: localhost\r\n") && heard.has("\r\nVia: 1.0 "));
          });
}

TEST(ProxyFields, trailers_pass_where_the_client_takes_them_and_none_that_steers) {
  constexpr std::string_view kAnswer =
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 7\r\n"
      "Content-Length: 9\r\nSet-Cookie: a=b\r\nAuthorization: x\r\n\r\n";
  Heard heard;
  through(keep_head(heard, kAnswer), [&](const coir::Address& address, Stage&) {
    coir::test::Client takes(address), takes_none(address);
    expect(takes.say("GET / HTTP/1.1\r\nHost: t\r\nTE: trailers\r\nConnection: TE\r\n\r\n"));
    expect(takes.hear("\r\n5\r\nhello\r\n0\r\nX-Sum: 7\r\n\r\n"));
    expect(takes_none.say(kGet) && takes_none.hear("\r\n5\r\nhello\r\n0\r\n\r\n"));
  });
}

}  // namespace proxy_fields_test
