// How an exchange passes through a proxy: content both ways, interim responses, retries, failures.

#include <CppUTest/TestHarness.h>
#include <sys/ioctl.h>

#include <atomic>

#include "tests/support/far_end.h"
#include "tests/unit/proxy/gateway.h"

namespace proxy_exchange_test {

using namespace coir::test;
using coir::Deadline;

namespace {

std::size_t find(const coir::test::Client& client, std::string_view text) {
  return heard_by(client).find(text);
}

bool lacks(const coir::test::Client& client, std::string_view text) {
  return find(client, text) == std::string_view::npos;
}

int heard_count(const coir::test::Client& client, std::string_view text) {
  int found = 0;
  for (std::size_t at = 0; (at = heard_by(client).find(text, at)) != std::string_view::npos; at += text.size()) ++found;
  return found;
}

// answer_once tells when it was asked, and answers once it may.
ScriptedServer::Script answer_once(std::atomic<bool>& asked, const std::atomic<bool>& go) {
  return [&](Peer& peer) {
    if (peer.hear().empty()) return;
    asked = true;
    until([&] { return go.load(); });
    peer.say(kHello);
  };
}

}  // namespace

TEST_GROUP_BASE(ProxyExchange, Gateway) {
  // failing has the upstream say something to a GET, and checks what the client hears, and that it is the end of it.
  void failing(std::string_view answer, std::string_view status, bool closes = true) {
    through(
        [answer, closes](Peer& peer) {
          if (peer.hear().empty() || !peer.say(answer)) return;
          if (!closes) peer.until_gone();
        },
        {.first_byte = 60s},
        [&](const coir::Address& address, Stage& stage) {
          coir::test::Client client(address);
          expect(client.say(kGet) && client.hear(status));
          expect(stage.forwarder->counters().bad_gateway.load() == 1);
        });
  }
  // cut_off has the upstream end in the middle of a response: the client must not take it for whole.
  void cut_off(std::string_view answer, std::string_view request, std::string_view never) {
    through([answer](Peer& peer) { static_cast<void>(!peer.hear().empty() && peer.say(answer)); },
            [&](const coir::Address& address, Stage& stage) {
              coir::test::Client client(address);
              expect(client.say(request));
              while (auto got = client.stream.read(std::span(client.memory).subspan(client.have), soon())) {
                client.have += *got;
              }
              expect(lacks(client, never));
              expect(stage.forwarder->counters().cut.load() == 1);
            });
  }
};

TEST(ProxyExchange, a_keep_alive_client_uses_one_upstream_connection) {
  Heard heard;
  std::atomic<unsigned> connections{0};
  through(
      [&](Peer& peer) {
        ++connections;
        keep_head(heard)(peer);
      },
      [&](const coir::Address& address, Stage&) {
        heard.size = 0;
        connections = 0;
        coir::test::Client client(address);
        for (int i = 0; i < 5; ++i) {
          client.have = 0;
          expect(client.say(kGet) && client.hear("hello"));
        }
        expect(connections == 1 && heard.count("GET / HTTP/1.1") == 5);
      });
}

TEST(ProxyExchange, a_method_of_any_name_passes) {
  Heard heard;
  through([&](Peer& peer) { keep_head(heard)(peer); },
          [&](const coir::Address& address, Stage&) {
            heard.size = 0;
            coir::test::Client client(address);
            expect(client.say("PROPFIND /dav HTTP/1.1\r\nHost: localhost\r\nDepth: 1\r\n\r\n") && client.hear("hello"));
            expect(heard.count("PROPFIND /dav HTTP/1.1\r\n") == 1 && heard.count("Content-Length") == 0);
          });
}

TEST(ProxyExchange, no_trace_passes) {
  std::atomic<int> asked{0};
  through([&](Peer& peer) { asked += !peer.hear().empty(); },
          [&](const coir::Address& address, Stage&) {
            coir::test::Client client(address);
            expect(client.say("TRACE / HTTP/1.1\r\nHost: localhost\r\nCookie: secret\r\n\r\n") &&
                   client.hear("HTTP/1.1 405 ") && client.hear("\r\nAllow: ") && asked == 0);
          });
}

TEST(ProxyExchange, chunks_of_an_upstream_may_have_extensions_and_padded_sizes) {
  through(
      [&](Peer& peer) {
        if (peer.hear().empty() || !peer.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5  \r\nfirst\r\n"))
          return;
        // At once: each piece that came alone would be a chunk of its own to the client, which keeps 1,024 bytes.
        constexpr std::string_view kPiece = "1;sig=0123456789abcdef\r\nx\r\n";
        static char pieces[400 * kPiece.size()];
        for (std::size_t at = 0; at < sizeof pieces; at += kPiece.size())
          memcpy(pieces + at, kPiece.data(), kPiece.size());
        peer.say({pieces, sizeof pieces});
        peer.say("4 \r\nlast\r\n0\r\n\r\n");
      },
      [&](const coir::Address& address, Stage&) {
        coir::test::Client client(address);
        expect(client.say(kGet) && client.hear("first") && client.hear("last\r\n0\r\n\r\n"));
      });
}

TEST(ProxyExchange, content_with_a_length_passes) {
  Heard heard;
  through(
      [&](Peer& peer) {
        for (std::string_view head = peer.hear(); !head.empty(); head = peer.hear()) {
          heard.keep(head);
          heard.keep(peer.hear_content(10));
          peer.say(kHello);
        }
      },
      [&](const coir::Address& address, Stage&) {
        for (const bool split : {false, true}) {
          heard.size = 0;
          coir::test::Client client(address);
          expect(client.say("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n01234"));
          // The upstream has the first half before the second is sent.
          if (split) expect(until([&] { return heard.size != 0; }, soon()));
          expect(client.say("56789") && client.hear("hello"));
          expect(heard.has("\r\nContent-Length: 10\r\n\r\n0123456789"));
          expect(heard.count("Content-Length") == 1);
        }
      });
}

TEST(ProxyExchange, chunks_are_framed_anew) {
  Heard heard;
  through(
      [&](Peer& peer) {
        heard.keep(peer.hear());
        while (!heard.view().ends_with("\r\n\r\n") || heard.count("\r\n\r\n") < 2) heard.keep(peer.hear_content(1));
        peer.say(kHello);
      },
      [&](const coir::Address& address, Stage&) {
        heard.size = 0;
        coir::test::Client client(address);
        expect(
            client.say("POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n"
                       "0005;ext=\"0\"\r\nhello\r\n3\r\nyou\r\n0\r\nX-Sum: 7\r\nContent-Length: 1\r\n\r\n"));
        expect(client.hear("hello"));
        expect(heard.has("\r\nTransfer-Encoding: chunked\r\n") && !heard.has("ext") && !heard.has("Content-Length"));
        expect(heard.view().ends_with("\r\n\r\n8\r\nhelloyou\r\n0\r\nX-Sum: 7\r\n\r\n"));
      });
}

TEST(ProxyExchange, an_upload_passes_as_it_comes) {
  std::atomic<int> got{0};
  through(
      [&](Peer& peer) {
        peer.hear();
        for (const std::string_view piece : {"3\r\nabc\r\n", "2\r\nde\r\n", "0\r\n\r\n"}) {
          if (peer.hear_content(piece.size()) != piece) return;
          ++got;
        }
        peer.say(kHello);
      },
      [&](const coir::Address& address, Stage&) {
        got = 0;
        coir::test::Client client(address);
        expect(client.say("POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"));
        expect(until([&] { return got == 1; }, soon()));
        expect(client.say("2\r\nde\r\n") && until([&] { return got == 2; }, soon()));
        expect(client.say("0\r\n\r\n") && client.hear("hello"));
      });
}

TEST(ProxyExchange, trailers_leave_an_answer_alone_that_has_begun) {
  std::atomic<bool> begun = false;
  through(
      [&](Peer& peer) {
        constexpr std::string_view kContent = "3\r\nabc\r\n", kEnd = "0\r\nX-Sum: 1\r\n\r\n";
        peer.hear();
        if (peer.hear_content(kContent.size()) != kContent || !peer.say("HTTP/1.1 2")) return;
        int unread = 1;
        const int gateway = far_end(peer.fd());
        begun = until([&] { return ::ioctl(gateway, FIONREAD, &unread) == 0 && unread == 0; }, soon());
        if (peer.hear_content(kEnd.size()) != kEnd) return;
        peer.say("00 OK\r\nContent-Length: 5\r\n\r\nhello");
      },
      [&](const coir::Address& address, Stage&) {
        begun = false;
        coir::test::Client client(address);
        expect(client.say("POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"));
        expect(until([&] { return begun.load(); }, soon()));
        expect(client.say("0\r\nX-Sum: 1\r\n\r\n") && client.hear("HTTP/1.1 200 OK\r\n") && client.hear("hello"));
      });
}

TEST(ProxyExchange, leave_to_continue_is_the_upstreams) {
  Heard heard;
  through(
      [&](Peer& peer) {
        heard.keep(peer.hear());
        peer.say("HTTP/1.1 100 Continue\r\n\r\n");
        heard.keep(peer.hear_content(5));
        peer.say(kHello);
      },
      [&](const coir::Address& address, Stage&) {
        heard.size = 0;
        coir::test::Client client(address);
        expect(client.say("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"));
        expect(client.hear("HTTP/1.1 100 Continue\r\n\r\n") && heard.has("\r\nExpect: 100-continue\r\n"));
        expect(client.say("12345") && client.hear("hello") && heard.view().ends_with("\r\n\r\n12345"));
        expect(find(client, "100 Continue") == heard_by(client).rfind("100 Continue"));
      });
}

TEST(ProxyExchange, a_refusal_instead_of_leave_is_the_answer) {
  through(
      [](Peer& peer) {
        peer.hear();
        peer.say("HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno");
        peer.until_gone();
      },
      [&](const coir::Address& address, Stage&) {
        coir::test::Client client(address);
        expect(client.say("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"));
        expect(client.hear("HTTP/1.1 413 ") && client.hear("\r\n\r\nno") && lacks(client, "100 Continue"));
        expect(client.hear_the_end());
      });
}

TEST(ProxyExchange, an_early_response_stops_the_upload) {
  std::atomic<bool> gone{false};
  through(
      [&](Peer& peer) {
        peer.hear();
        peer.hear_content(3);
        peer.say("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
        peer.until_gone();
        gone = true;
      },
      [&](const coir::Address& address, Stage&) {
        gone = false;
        coir::test::Client client(address);
        // The client never sends the rest.
        expect(client.say("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\nabc"));
        expect(client.hear("HTTP/1.1 403 ") && client.hear("Connection: close\r\n") && client.hear("\r\n\r\nno"));
        // Nor is the connection used again, of whose request the rest is missing.
        expect(until([&] { return gone.load(); }, soon()));
      });
}

TEST(ProxyExchange, an_early_response_is_heard_by_a_client_that_sends_on) {
  through(
      [](Peer& peer) {
        peer.hear();
        peer.say("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
        peer.until_gone();
      },
      {}, {.limits = {.max_body = 64 << 20}},
      [&](Server&, const coir::Address& address, Stage&) {
        coir::test::Client client(address);
        expect(client.say("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 33554432\r\n\r\n"));
        static const char piece[65536] = {};
        while (client.stream.write({piece, sizeof piece}, coir::Deadline::after(20ms))) {
        }
        expect(client.hear("HTTP/1.1 403 ") && client.hear("\r\n\r\nno"));
      });
}

TEST(ProxyExchange, a_long_response_and_upload_pass_whole) {
  static char text[1'000'000];
  for (std::size_t i = 0; i < sizeof text; ++i) text[i] = static_cast<char>('a' + i % 23);
  std::atomic<bool> same{false};
  through(
      [&](Peer& peer) {
        peer.hear();
        bool equal = true;
        for (std::size_t at = 0; at < sizeof text;) {
          const auto got = peer.hear_content(std::min<std::size_t>(4096, sizeof text - at));
          if (got.empty()) return;
          equal = equal && memcmp(got.data(), text + at, got.size()) == 0;
          at += got.size();
        }
        same = equal;
        peer.say("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
        peer.say({text, sizeof text});
      },
      [&](const coir::Address& address, Stage&) {
        same = false;
        coir::test::Client client(address);
        expect(client.say("PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n") &&
               client.say({text, sizeof text}));
        expect(client.hear("\r\n\r\n") && same);
        std::size_t at = client.have - heard_by(client).find("\r\n\r\n") - 4;
        bool equal = memcmp(client.memory.data() + client.have - at, text, at) == 0;
        char piece[2048];
        while (at < sizeof text) {
          const auto got = client.stream.read(piece, soon());
          if (!got) break;
          equal = equal && memcmp(piece, text + at, *got) == 0;
          at += *got;
        }
        expect(equal && at == sizeof text);
      });
}

TEST(ProxyExchange, head_204_and_304_have_no_content) {
  Heard heard;
  through(keep_head(heard, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"), [&](const coir::Address& address, Stage&) {
    coir::test::Client client(address);
    for (int i = 0; i < 2; ++i) {
      client.have = 0;
      expect(client.say("HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n") && client.hear("Content-Length: 5\r\n\r\n"));
    }
  });
  for (const std::string_view status : {"204 No Content", "304 Not Modified"}) {
    char answer[128];
    snprintf(answer, sizeof answer, "HTTP/1.1 %s\r\nETag: \"a\"\r\n\r\n", status.data());
    through(keep_head(heard, answer), [&](const coir::Address& address, Stage&) {
      coir::test::Client client(address);
      for (int i = 0; i < 2; ++i) {
        client.have = 0;
        expect(client.say(kGet) && client.hear(status) && client.hear("ETag: \"a\"\r\n\r\n"));
        expect(lacks(client, "Content-Length") && lacks(client, "Transfer-Encoding"));
      }
    });
  }
}

TEST(ProxyExchange, content_that_ends_with_the_connection_is_framed) {
  through([](Peer& peer) { static_cast<void>(!peer.hear().empty() && peer.say("HTTP/1.0 200 OK\r\n\r\nhello")); },
          [&](const coir::Address& address, Stage&) {
            coir::test::Client client(address);
            expect(client.say(kGet) && client.hear("\r\n\r\n5\r\nhello\r\n0\r\n\r\n"));
            coir::test::Client old(address);
            expect(old.say("GET / HTTP/1.0\r\n\r\n") && old.hear("\r\n\r\nhello") && old.hear_the_end());
          });
}

TEST(ProxyExchange, a_stale_connection_is_retried_once_on_a_new_one) {
  for (const bool posts : {false, true}) {
    std::atomic<unsigned> connections{0};
    through(
        [&](Peer& peer) {
          const unsigned number = connections++;
          if (peer.hear().empty()) return;
          peer.say(kHello);
          // The next request is heard and not answered.
          if (number % 2 == 0) {
            peer.hear();
            return;
          }
          keep_nothing(peer);
        },
        [&](const coir::Address& address, Stage& stage) {
          connections = 0;
          coir::test::Client client(address);
          expect(client.say(kGet) && client.hear("hello"));
          client.have = 0;
          expect(client.say(posts ? "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nab" : kGet));
          // A request that the server may have executed is not repeated.
          expect(client.hear(posts ? "HTTP/1.1 502 " : "hello"));
          expect(connections == (posts ? 1u : 2u) && stage.forwarder->counters().retried.load() == (posts ? 0u : 1u));
        });
  }
}

// Its first bytes fill the place that they are read into: more could be in the socket, and is not.
TEST(ProxyExchange, a_connection_whose_answer_came_at_once_in_chunks_is_used_again) {
  static char answer[8'000];
  constexpr std::string_view kHead = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1000\r\n";
  constexpr std::size_t kChunk = 0x1000;
  constexpr std::string_view kTail = "\r\n0\r\n\r\n";
  memset(answer, 'x', sizeof answer);
  memcpy(answer, kHead.data(), kHead.size());
  memcpy(answer + kHead.size() + kChunk, kTail.data(), kTail.size());
  std::atomic<unsigned> connections{0};
  through(
      [&](Peer& peer) {
        ++connections;
        while (!peer.hear().empty() && peer.say({answer, kHead.size() + kChunk + kTail.size()})) {
        }
      },
      [&](const coir::Address& address, Stage& stage) {
        connections = 0;
        for (int i = 0; i < 3; ++i) {
          coir::test::Client client(address);
          expect(client.say("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n") && client.hear_the_end());
          until([&] { return stage.group->state_of(stage.group->members()[0]).in_use == 0; });
        }
        expect(connections == 1);
      });
}

TEST(ProxyExchange, an_upstream_that_vanished_while_its_connections_rested_costs_one_retry) {
  std::atomic<int> heard{0}, gone{0};
  std::atomic<bool> over{false};
  through(
      [&](Peer& peer) {
        if (peer.number >= 2) return keep_nothing(peer);
        peer.hear();
        // The first is not to vanish before the second has a connection of its own.
        ++heard;
        coir::test::until([&] { return heard == 2 && gone == static_cast<int>(peer.number); });
        peer.say(kHello);
        gone += peer.vanish();
        coir::test::until([&] { return over.load(); });
        peer.come_back();
      },
      [&](const coir::Address& address, Stage& stage) {
        heard = gone = 0;
        over = false;
        coir::test::Client clients[] = {coir::test::Client(address), coir::test::Client(address)};
        for (auto& client : clients) expect(client.say(kGet));
        for (auto& client : clients) expect(client.hear("hello"));
        coir::test::until([&] { return gone == 2 && stage.group->state().resting == 2; });
        for (auto& client : clients) {
          client.have = 0;
          expect(client.say(kGet) && client.hear("hello"));
          // The others that rested are not asked.
          coir::test::until([&] { return stage.group->state().in_use == 0; });
          coir::test::until([&] { return stage.group->state().resting != 0; });
          expect(stage.group->state().resting == 1);
        }
        expect(stage.forwarder->counters().retried.load() == 1);
        over = true;
      });
}

// In one run: the kernel takes six seconds.
TEST(ProxyExchange, an_upstream_that_vanished_so_has_a_post_fail_before_its_time) {
  std::atomic<bool> gone{false}, over{false};
  bool first = true;
  through(
      [&](Peer& peer) {
        peer.hear();
        peer.say(kHello);
        gone = peer.vanish();
        coir::test::until([&] { return over.load(); });
        peer.come_back();
      },
      {.first_byte = 24h},
      [&](const coir::Address& address, Stage& stage) {
        if (!std::exchange(first, false)) return;
        coir::test::Client client(address);
        expect(client.say(kGet) && client.hear("hello"));
        expect(coir::test::until([&] { return gone && stage.group->state().resting == 1; }, soon()));
        expect(client.say("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nonce"));
        expect(client.hear("HTTP/1.1 502 ") && stage.forwarder->counters().retried.load() == 0);
        over = true;
      });
}

TEST(ProxyExchange, a_new_connection_is_not_retried) {
  std::atomic<unsigned> connections{0};
  through(
      [&](Peer& peer) {
        ++connections;
        peer.hear();
      },
      [&](const coir::Address& address, Stage&) {
        connections = 0;
        coir::test::Client client(address);
        expect(client.say(kGet) && client.hear("HTTP/1.1 502 ") && connections == 1);
      });
}

TEST(ProxyExchange, a_put_is_repeated_with_its_content) {
  std::atomic<unsigned> connections{0};
  Heard heard;
  through(
      [&](Peer& peer) {
        const unsigned number = connections++;
        if (number == 0) {
          peer.hear();
          peer.say(kHello);
          peer.hear();
          return;
        }
        heard.keep(peer.hear());
        heard.keep(peer.hear_content(4));
        peer.say(kHello);
      },
      [&](const coir::Address& address, Stage&) {
        connections = 0;
        heard.size = 0;
        coir::test::Client client(address);
        expect(client.say(kGet) && client.hear("hello"));
        client.have = 0;
        expect(client.say("PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nabcd") &&
               client.hear("hello"));
        expect(heard.view().ends_with("\r\n\r\nabcd"));
      });
}

// The connection is a reused one, whose last read took all there was: what the upstream says then is known by its edge
// alone, which comes while the last of the content is waited for.
TEST(ProxyExchange, an_answer_that_comes_with_the_last_of_an_upload_is_heard) {
  for (const bool chunked : {false, true}) {
    std::atomic<int> step{0};
    through(
        [&](Peer& peer) {
          if (peer.hear().empty()) return;
          peer.say(kHello);
          if (peer.hear().empty()) return;
          peer.hear_content(chunked ? 8 : 3);
          step = 1;
          until([&] { return step == 2; });
          peer.say("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes");
          step = 3;
          peer.until_gone();
        },
        {.first_byte = 5s},
        [&](const coir::Address& address, Stage&) {
          step = 0;
          coir::test::Client client(address);
          expect(client.say(kGet) && client.hear("hello"));
          client.have = 0;
          expect(client.say(chunked
                                ? "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"
                                : "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 6\r\n\r\nabc"));
          expect(until([&] { return step == 1; }, soon()));
          // Nothing else runs on this worker until both are there, the upstream's first.
          step = 2;
          while (step != 3) coir::port::relax();
          expect(client.say(chunked ? "3\r\ndef\r\n0\r\n\r\n" : "def") && client.hear("\r\n\r\nyes"));
        });
  }
}

TEST(ProxyExchange, bytes_behind_a_response_drop_the_connection) {
  std::atomic<unsigned> connections{0};
  for (const std::string_view answer :
       {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n\r\nevil",
        "HTTP/1.1 204 hello\r\n\r\nevil"}) {
    through(
        [&](Peer& peer) {
          ++connections;
          if (peer.hear().empty()) return;
          peer.say(answer);
          peer.until_gone();
        },
        [&](const coir::Address& address, Stage&) {
          connections = 0;
          coir::test::Client client(address);
          for (unsigned i = 1; i <= 3; ++i) {
            client.have = 0;
            expect(client.say(kGet) && client.hear(answer.find("204") != answer.npos ? "\r\n\r\n" : "hello"));
            if (answer.find("chunked") != answer.npos) expect(client.hear("\r\n0\r\n\r\n"));
            expect(lacks(client, "evil"));
            expect(connections == i);
          }
        });
  }
}

TEST(ProxyExchange, a_pooled_connection_that_says_something_or_hangs_up_is_closed) {
  for (const bool says : {true, false}) {
    std::atomic<bool> go{false}, gone{false};
    std::atomic<unsigned> connections{0};
    through(
        [&](Peer& peer) {
          if (connections++ != 0) return keep_nothing(peer);
          peer.hear();
          peer.say(kHello);
          until([&] { return go.load(); });
          says ? static_cast<void>(peer.say("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")) : peer.stop_sending();
          peer.until_gone();
          gone = true;
        },
        [&](const coir::Address& address, Stage& stage) {
          go = gone = false;
          connections = 0;
          coir::test::Client client(address);
          expect(client.say(kGet) && client.hear("hello"));
          go = true;
          expect(until([&] { return gone.load(); }, soon()));
          client.have = 0;
          expect(client.say(kGet) && client.hear("hello") && lacks(client, "evil"));
          expect(connections == 2 && stage.forwarder->counters().retried.load() == 0);
        });
  }
}

TEST(ProxyExchange, bytes_that_are_no_response_are_502) {
  failing("", "HTTP/1.1 502 ");
  failing("HTTP/1.1 20", "HTTP/1.1 502 ");
  failing("garbage\r\n\r\n", "HTTP/1.1 502 ", false);
  failing("HTTP/1.1 200 OK\nContent-Length: 0\n\n", "HTTP/1.1 502 ", false);
  failing("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "HTTP/1.1 502 ", false);
  failing("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", "HTTP/1.1 502 ", false);
  failing("HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n", "HTTP/1.1 502 ", false);
  failing("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked,\r\n\r\n", "HTTP/1.1 502 ", false);
  failing("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "HTTP/1.1 502 ", false);
  failing("HTTP/1.1 200 OK\r\n X: a\r\n\r\n", "HTTP/1.1 502 ", false);
  failing("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", "HTTP/1.1 502 ", false);
}

// RFC 9112, 5.2: a gateway puts blanks in the place of a folded line's end.
TEST(ProxyExchange, a_folded_field_is_passed_on_in_one_line) {
  Heard heard;
  through(keep_head(heard, "HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 5\r\n\r\nhello"),
          [&](const coir::Address& address, Stage&) {
            coir::test::Client client(address);
            expect(client.say(kGet) && client.hear("hello") && !lacks(client, "\r\nX: a   b\r\n"));
          });
}

TEST(ProxyExchange, a_status_line_without_a_reason_passes) {
  for (const std::string_view answer :
       {"HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nhello", "HTTP/1.1 200 \r\nContent-Length: 5\r\n\r\nhello"}) {
    Heard heard;
    through(keep_head(heard, answer), [&](const coir::Address& address, Stage&) {
      coir::test::Client client(address);
      expect(client.say(kGet) && client.hear("hello") && !lacks(client, "HTTP/1.1 200 OK\r\n"));
    });
  }
}

TEST(ProxyExchange, a_flood_of_interim_responses_is_502) {
  through(
      [](Peer& peer) {
        if (peer.hear().empty()) return;
        while (peer.say("HTTP/1.1 102 Processing\r\n\r\n")) {
        }
      },
      [&](const coir::Address& address, Stage&) {
        coir::test::Client client(address);
        expect(client.say(kGet) && client.hear("HTTP/1.1 502 "));
      });
}

TEST(ProxyExchange, a_head_passes_up_to_the_length_that_its_route_takes) {
  struct Case {
    std::size_t fields, bytes;  // of each field's value
    std::uint32_t max_head;
    bool passes;
  };
  constexpr std::uint32_t kUsual = ForwardRules().max_head;
  for (const Case& each :
       {Case{1, 6'000, kUsual, true}, Case{1, 11'000, kUsual, true}, Case{1, 13'000, kUsual, false},
        Case{1, 100'000, kUsual, false}, Case{30, 1'000, 32'768, true}, Case{1, 32'000, 32'768, true},
        Case{1, 33'000, 32'768, false}, Case{2, 5'000, 4'096, false}}) {
    static constexpr std::string_view kPiece = "0123456789";
    through(
        [&each](Peer& peer) {
          if (peer.hear().empty() || !peer.say("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n")) return;
          for (std::size_t field = 0; field < each.fields; ++field) {
            bool said = peer.say("X: ");
            for (std::size_t at = 0; said && at < each.bytes; at += kPiece.size()) said = peer.say(kPiece);
            if (!said || !peer.say("\r\n")) return;
          }
          if (peer.say("\r\nhello")) peer.until_gone();
        },
        {.max_head = each.max_head},
        [&](const coir::Address& address, Stage&) {
          coir::test::Client client(address);
          expect(client.say(kGet));
          static char all[50'000];
          std::size_t have = 0;
          const std::string_view wanted = each.passes ? "\r\n\r\nhello" : "HTTP/1.1 502 ";
          while (std::string_view(all, have).find(wanted) == std::string_view::npos) {
            const auto got = client.stream.read(std::span(all).subspan(have), soon());
            expect(got.has_value());
            if (!got) break;
            have += *got;
          }
          std::size_t whole = 0;
          for (std::string_view rest(all, have); rest.find("\r\nX: ") != rest.npos;) {
            rest.remove_prefix(rest.find("\r\nX: ") + 5);
            const std::string_view value = rest.substr(0, rest.find("\r\n"));
            bool right = value.size() == each.bytes;
            for (std::size_t at = 0; right && at < value.size(); ++at) right = value[at] == kPiece[at % kPiece.size()];
            whole += right;
          }
          expect(whole == (each.passes ? each.fields : 0));
        });
  }
}

TEST(ProxyExchange, many_fields_pass) {
  through(
      [](Peer& peer) {
        if (peer.hear().empty()) return;
        peer.say("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n");
        for (int i = 0; i < 60; ++i) peer.say("A: b\r\n");
        peer.say("\r\nhello");
        peer.until_gone();
      },
      [&](const coir::Address& address, Stage&) {
        coir::test::Client client(address);
        expect(client.say(kGet) && client.hear("\r\n\r\nhello") && heard_count(client, "A: b\r\n") == 60);
      });
}

TEST(ProxyExchange, a_refused_connection_is_502) {
  Heard heard;
  through(keep_head(heard), [&](const coir::Address& address, Stage& stage) {
    auto listener = coir::TcpListener::listen(*coir::Address::parse("127.0.0.1:0"));
    char url[32];
    const std::string_view nobody = coir::format(url, "http://127.0.0.1:", listener->local_address().port());
    listener->close();
    auto none = coir::http::Upstreams::create(nobody);
    UpstreamGroup* const group = std::exchange(stage.group, &none->group());
    coir::test::Client client(address);
    expect(client.say(kGet) && client.hear("HTTP/1.1 502 Bad Gateway\r\n"));
    stage.group = group;
  });
}

TEST(ProxyExchange, an_upstream_that_is_silent_is_504) {
  through([](Peer& peer) { peer.until_gone(); }, {.first_byte = 30ms},
          [&](const coir::Address& address, Stage& stage) {
            coir::test::Client client(address);
            expect(client.say(kGet) && client.hear("HTTP/1.1 504 Gateway Timeout\r\n"));
            expect(stage.forwarder->counters().timed_out.load() == 1);
          });
}

TEST(ProxyExchange, no_memory_for_an_upstream_is_503_with_retry_after) {
  Heard heard;
  through(keep_head(heard), {.retry_after = 7s}, [&](const coir::Address& address, Stage& stage) {
    coir::test::Client client(address);
    client.say("");
    const std::size_t ceiling = coir::account::connections.ceiling();
    // The client's connection is there already.
    expect(client.say("GET ") && until([] { return coir::account::connections.used() != 0; }, soon()));
    coir::account::connections.set_ceiling(coir::account::connections.used());
    expect(client.say("/ HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    expect(client.hear("HTTP/1.1 503 ") && client.hear("Retry-After: 7\r\n"));
    coir::account::connections.set_ceiling(ceiling);
    expect(stage.forwarder->counters().unavailable.load() == 1);
  });
}

TEST(ProxyExchange, an_upstream_cut_off_in_the_middle_is_visible) {
  cut_off("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello", kGet, "never");
  cut_off("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", kGet, "\r\n0\r\n\r\n");
  cut_off("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n", kGet, "\r\n0\r\n\r\n");
  cut_off("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\n0\r\n\r\n", kGet, "\r\n0\r\n\r\n");
}

TEST(ProxyExchange, a_client_that_leaves_has_its_upstream_left_at_once) {
  for (const bool resets : {false, true}) {
    std::atomic<bool> asked{false}, gone{false};
    through(
        [&](Peer& peer) {
          peer.hear();
          asked = true;
          peer.until_gone();
          gone = true;
        },
        [&](const coir::Address& address, Stage& stage) {
          asked = gone = false;
          coir::test::Client client(address);
          expect(client.say(kGet) && until([&] { return asked.load(); }, soon()));
          resets ? client.reset() : client.end_its_side();
          expect(until([&] { return gone.load(); }, soon()));
          expect(until([&] { return stage.forwarder->counters().cancelled.load() == 1; }, soon()));
        });
  }
}

TEST(ProxyExchange, a_client_that_leaves_its_upload_has_its_upstream_left_at_once) {
  for (const bool resets : {false, true}) {
    std::atomic<bool> asked{false}, gone{false};
    through(
        [&](Peer& peer) {
          peer.hear();
          peer.hear_content(3);
          asked = true;
          peer.until_gone();
          gone = true;
        },
        [&](const coir::Address& address, Stage& stage) {
          asked = gone = false;
          coir::test::Client client(address);
          expect(client.say("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nabc"));
          expect(until([&] { return asked.load(); }, soon()));
          resets ? client.reset() : client.end_its_side();
          expect(until([&] { return gone.load(); }, Deadline::after(20s)));
          expect(until([&] { return stage.forwarder->counters().cancelled.load() == 1; }, soon()));
          if (!resets) expect(client.hear("HTTP/1.1 400 "));
        });
  }
}

TEST(ProxyExchange, a_server_that_stops_lets_an_answer_come) {
  std::atomic<bool> asked{false}, go{false};
  through(answer_once(asked, go), {}, {}, [&](Server& server, const coir::Address& address, Stage&) {
    asked = go = false;
    coir::test::Client client(address);
    expect(client.say(kGet) && until([&] { return asked.load(); }, soon()));
    server.begin_stop();
    go = true;
    expect(client.hear("Connection: close\r\n") && client.hear("hello"));
  });
}

// An exchange cannot rest while the next request lies behind it: its fiber waits for the upstream.
TEST(ProxyExchange, a_server_that_stops_lets_an_answer_come_behind_a_handler_that_has_waited) {
  std::atomic<bool> asked{false}, go{false};
  through(answer_once(asked, go), {}, {}, [&](Server& server, const coir::Address& address, Stage& stage) {
    asked = go = false;
    stage.waits_first = true;
    coir::test::Client client(address);
    expect(client.say("GET / HTTP/1.1\r\nHost: t\r\n\r\nGET / HTTP/1.1\r\nHost: t\r\n\r\n"));
    expect(until([&] { return asked.load(); }, soon()));
    coir::test::until_polled();
    server.begin_stop();
    go = true;
    expect(client.hear("HTTP/1.1 200 ") && client.hear("Connection: close\r\n") && client.hear("hello"));
  });
}

TEST(ProxyExchange, a_slow_client_holds_the_upstream_back) {
  std::atomic<bool> held_back{false};
  std::atomic<std::size_t> said{0};
  through(
      [&](Peer& peer) {
        if (peer.hear().empty()) return;
        peer.say("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n");
        static const char piece[65536] = {};
        for (pollfd entry{.fd = peer.fd(), .events = POLLOUT, .revents = 0}; poll(&entry, 1, 300) == 1;) {
          const ssize_t sent = send(peer.fd(), piece, sizeof piece, MSG_NOSIGNAL | MSG_DONTWAIT);
          if (sent < 0) break;
          said += static_cast<std::size_t>(sent);
        }
        held_back = true;
        peer.until_gone();
      },
      [&](const coir::Address& address, Stage&) {
        held_back = false;
        said = 0;
        coir::test::Client client(address);
        expect(client.say(kGet) && client.hear("\r\n\r\n"));
        // Only the kernel's buffers and one of ours hold bytes on their way.
        expect(until([&] { return held_back.load(); }, soon()) && said < 100'000'000);
        expect(coir::account::buffers.used() - coir::Buffer::spare_bytes() <= 128 * 1024);
        client.reset();
      });
}

}  // namespace proxy_exchange_test
