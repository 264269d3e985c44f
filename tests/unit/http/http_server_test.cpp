// The promises of Server and Exchange to authors of handlers. Clients are fibers of the same run; without fibers the
// server has a thread of the test's to itself.

#include <CppUTest/TestHarness.h>
#include <arpa/inet.h>
#include <coir/config.h>
#include <coir/detail/accounts.h>
#include <coir/http/server.h>
#include <coir/ledger.h>
#include <coir/pressure.h>
#include <coir/program.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <span>
#include <string_view>

#if !COIR_NO_ASYNC
#include <coir/cancel_scope.h>
#include <coir/fiber.h>
#include <coir/runtime.h>
#include <signal.h>
#endif

#include "tests/support/until.h"
#include "tests/unit/http/run_beside.h"

namespace http_server_test {

using namespace std::chrono_literals;
using coir::Address;
using coir::Deadline;
using coir::ErrorCode;
using coir::TcpListener;
using coir::TcpStream;
using coir::http::Exchange;
using coir::http::Handler;
using coir::http::Server;
using coir::http::ServerOptions;
using coir::test::until;

namespace {

Deadline soon() {
  return Deadline::after(60s);
}

char received[1'000'000];

// Visitor speaks to the server and keeps what it hears in `received`.
struct Visitor {
  TcpStream stream;
  std::size_t have = 0;

  void say(std::string_view text) { CHECK(stream.write(text, soon()).has_value()); }
  std::string_view heard() const { return {received, have}; }
  void hear_until(std::string_view text) {
    while (heard().find(text) == std::string_view::npos) {
      auto got = stream.read({received + have, sizeof received - have}, soon());
      if (!got) FAIL(received);
      have += *got;
      received[have] = '\0';
    }
  }
  void hear_the_end() {
    for (;;) {
      auto got = stream.read({received + have, sizeof received - have}, soon());
      if (!got) {
        CHECK(got.error() == ErrorCode::end_of_stream);
        received[have] = '\0';
        return;
      }
      have += *got;
    }
  }
  bool has(std::string_view text) const { return heard().find(text) != std::string_view::npos; }
};

// visit_once is one client.
template <class Visit>
void visit_once(const Address& address, Visit visit) {
  memset(received, 0, 256);
  auto connected = TcpStream::connect(address, soon());
  CHECK(connected.has_value());
  Visitor visitor{std::move(*connected)};
  visit(visitor);
}

// beside_server runs `visit` as a client of a server with these options, beside that server, and checks that both end
// well.
template <class Visit>
void beside_server(ServerOptions options, Visit visit) {
  auto server = Server::create(options);
  CHECK(server.has_value());
  auto listener = TcpListener::listen(*Address::parse("127.0.0.1:0"));
  CHECK(listener.has_value());
  const Address address = listener->local_address();
  CHECK(server->add(std::move(*listener)).has_value());
  coir::test::run_beside(*server,
                         [&] { visit_once(address, [&](Visitor& visitor) { visit(*server, address, visitor); }); });
  LONGS_EQUAL(0, server->gauges().open);
}

template <class Visit>
void with_server(ServerOptions options, Visit visit) {
  beside_server(options, [&](Server&, const Address&, Visitor& visitor) { visit(visitor); });
}

void echo(Exchange& exchange) {
  char piece[100];
  std::uint64_t total = 0;
  for (;;) {
    auto got = exchange.read_body(piece);
    if (!got) break;
    total += *got;
  }
  char text[32];
  char* end = coir::http::write_decimal(text, total);
  *end++ = '\n';
  exchange.respond(200, "text/plain", {text, end});
}

void count_in_chunks(Exchange& exchange) {
  exchange.start(200).field("Content-Type", "text/plain");
  if (!exchange.begin_chunked()) return;
  for (int i = 0; i < 1000; ++i) {
    char text[24];
    char* end = coir::http::write_decimal(text, static_cast<std::uint64_t>(i));
    *end++ = '\n';
    if (!exchange.write({text, end})) return;
  }
}

char large[300'000];

}  // namespace

TEST_GROUP(HttpServer) {};

TEST(HttpServer, asks_for_content_when_the_handler_reads_it) {
  with_server({.handler = echo}, [](Visitor& visitor) {
    visitor.say("POST / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
    visitor.hear_until("\r\n\r\n");
    CHECK(visitor.heard() == "HTTP/1.1 100 Continue\r\n\r\n");
    visitor.say("12345GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    visitor.hear_until("\r\n\r\n5\n");
    visitor.hear_until("\r\n\r\n0\n");
  });
}

TEST(HttpServer, does_not_ask_for_content_that_is_there) {
  with_server({.handler = echo}, [](Visitor& visitor) {
    visitor.say("POST / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n12345");
    visitor.hear_until("\r\n\r\n5\n");
    CHECK_FALSE(visitor.has("100 Continue"));
  });
}

TEST(HttpServer, hands_over_content_of_known_length_and_in_chunks) {
  with_server({.handler = echo}, [](Visitor& visitor) {
    visitor.say("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 300000\r\n\r\n");
    visitor.say({large, sizeof large});
    visitor.hear_until("\r\n\r\n300000\n");
    visitor.say("POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n493e0\r\n");
    visitor.say({large, sizeof large});
    visitor.say("\r\n1;a=b\r\nx\r\n0\r\nTrailer: x\r\n\r\nGET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    visitor.hear_until("\r\n\r\n300001\n");
    visitor.hear_until("\r\n\r\n0\n");
  });
}

TEST(HttpServer, content_behind_a_head_at_the_end_of_the_buffer_costs_what_any_other_does) {
  // The input buffer has 10,240 bytes; the second head leaves one of them.
  static char first[3'000], second[7'239], content[500'000];
  static int reads;
  const auto pad = [](std::span<char> into, std::string_view head) {
    memset(into.data(), 'x', into.size());
    memcpy(into.data(), head.data(), head.size());
    memcpy(into.data() + into.size() - 4, "\r\n\r\n", 4);
  };
  pad(first, "GET /1 HTTP/1.1\r\nHost: localhost\r\nA: ");
  pad(second, "POST /2 HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nA: ");
  static char both[sizeof first + sizeof second];
  memcpy(both, first, sizeof first);
  memcpy(both + sizeof first, second, sizeof second);
  reads = 0;
  ServerOptions options;
  options.handler = [](Exchange& exchange) {
    if (exchange.request().path == "/1") return exchange.respond(200, "text/plain", "first\n");
    char piece[4096];
    while (exchange.read_body(piece)) ++reads;
    exchange.respond(200, "text/plain", "second\n");
  };
  with_server(options, [](Visitor& visitor) {
    visitor.say({both, sizeof both});
    visitor.hear_until("first\n");
    visitor.say("7a120\r\n");
    visitor.say({content, sizeof content});
    visitor.say("\r\n0\r\n\r\n");
    visitor.hear_until("second\n");
  });
  CHECK_TRUE(reads < 5'000);
}

TEST(HttpServer, broken_content_is_answered_though_the_handler_ignores_it) {
  with_server({.handler = echo}, [](Visitor& visitor) {
    visitor.say("POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcX");
    visitor.hear_the_end();
    CHECK(visitor.heard().starts_with("HTTP/1.1 400 "));
    CHECK(visitor.has("Connection: close\r\n"));
  });
}

TEST(HttpServer, writes_chunks_to_new_clients_and_until_the_end_to_old_ones) {
  with_server({.handler = count_in_chunks}, [](Visitor& visitor) {
    visitor.say("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    visitor.hear_until("\r\n0\r\n\r\n");
    CHECK(visitor.has("Transfer-Encoding: chunked\r\n"));
    CHECK(visitor.has("\r\n\r\n2\r\n0\n\r\n2\r\n1\n\r\n"));
    CHECK(visitor.has("\r\n4\r\n999\n\r\n0\r\n\r\n"));
    visitor.have = 0;
    visitor.say("GET / HTTP/1.0\r\n\r\n");
    visitor.hear_the_end();
    CHECK(visitor.has("Connection: close\r\n"));
    CHECK(visitor.has("\r\n\r\n0\n1\n2\n"));
    CHECK(visitor.heard().ends_with("998\n999\n"));
  });
}

TEST(HttpServer, a_piece_larger_than_any_buffer_is_one_chunk) {
  for (char& c : large) c = 'x';
  const auto handler = [](Exchange& exchange) {
    exchange.start(200);
    if (exchange.begin_chunked()) static_cast<void>(exchange.write({large, 100'000}));
  };
  with_server({.handler = handler}, [](Visitor& visitor) {
    visitor.say("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    visitor.hear_until("x\r\n0\r\n\r\n");
    CHECK(visitor.has("\r\n\r\n186a0\r\nxxx"));
    LONGS_EQUAL(100'000, visitor.heard().rfind('x') - visitor.heard().find("\nxxx"));
  });
}

TEST(HttpServer, large_content_goes_out_whole_between_small) {
  for (std::size_t i = 0; i < sizeof large; ++i) large[i] = static_cast<char>('a' + i % 26);
  const auto handler = [](Exchange& exchange) {
    const bool small = exchange.request().path == "/small";
    exchange.respond(200, "text/plain", small ? "small" : std::string_view(large, sizeof large));
  };
  with_server({.handler = handler}, [](Visitor& visitor) {
    visitor.say(
        "GET /small HTTP/1.1\r\nHost: localhost\r\n\r\nGET / HTTP/1.1\r\nHost: localhost\r\n\r\nGET /small "
        "HTTP/1.1\r\nHost: "
        "t\r\nConnection: close\r\n\r\n");
    visitor.hear_the_end();
    CHECK(visitor.has("\r\n\r\nsmallHTTP/1.1 200"));
    const std::size_t at = visitor.heard().find("abcdef");
    CHECK(visitor.heard().substr(at, sizeof large) == std::string_view(large, sizeof large));
    CHECK(visitor.heard().substr(at + sizeof large).starts_with("HTTP/1.1 200"));
  });
}

TEST(HttpServer, a_handler_that_answers_nothing_answers_500) {
  const auto silent = [](Exchange& exchange) { exchange.start(200); };
  with_server({.handler = silent}, [](Visitor& visitor) {
    visitor.say("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    visitor.hear_the_end();
    CHECK(visitor.heard().starts_with("HTTP/1.1 500 "));
  });
}

TEST(HttpServer, a_header_that_would_split_the_answer_is_answered_500) {
  const auto careless = [](Exchange& exchange) {
    exchange.start(200).field("X", "a\r\nSet-Cookie: b");
    static_cast<void>(exchange.begin_fixed(0));
  };
  with_server({.handler = careless}, [](Visitor& visitor) {
    visitor.say("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    visitor.hear_the_end();
    CHECK(visitor.heard().starts_with("HTTP/1.1 500 "));
    CHECK_FALSE(visitor.has("Set-Cookie"));
  });
}

TEST(HttpServer, content_shorter_or_longer_than_promised_ends_the_connection) {
  for (const char* content : {"ab", "abcdef"}) {
    ServerOptions options;
    options.handler = [content](Exchange& exchange) {
      exchange.start(200);
      if (!exchange.begin_fixed(4)) return;
      static_cast<void>(exchange.write(content));
    };
    with_server(options, [](Visitor& visitor) {
      visitor.say("GET / HTTP/1.1\r\nHost: localhost\r\n\r\nGET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
      for (;;) {
        auto got = visitor.stream.read({received + visitor.have, 1000}, soon());
        if (!got) break;
        visitor.have += *got;
      }
      const std::size_t first = visitor.heard().find("HTTP/1.1");
      CHECK(visitor.heard().find("HTTP/1.1", first + 1) == std::string_view::npos);
    });
  }
}

TEST(HttpServer, an_answer_cut_short_by_a_file_that_shrinks_takes_none_before_it_along) {
  // Smaller and larger than the memory in which answers gather.
  for (std::uint64_t promised : {6'000ull, 200'000ull}) {
    ServerOptions options;
    options.handler = [promised](Exchange& exchange) {
      if (exchange.request().path == "/1") return exchange.respond(200, "text/plain", "first\n");
      FILE* const file = tmpfile();
      fputs("short", file);
      fflush(file);
      exchange.start(200);
      if (exchange.begin_fixed(promised)) static_cast<void>(exchange.send_file(fileno(file), 0, promised));
      fclose(file);
    };
    with_server(options, [](Visitor& visitor) {
      visitor.say(
          "GET /1 HTTP/1.1\r\nHost: localhost\r\n\r\nGET /2 HTTP/1.1\r\nHost: localhost\r\n\r\nGET /1 "
          "HTTP/1.1\r\nHost: localhost\r\n\r\n");
      visitor.hear_the_end();
      CHECK(visitor.has("\r\n\r\nfirst\nHTTP/1.1 200 OK\r\n") && visitor.heard().ends_with("\r\n\r\nshort"));
    });
  }
}

TEST(HttpServer, a_handler_may_end_the_connection) {
  const auto last = [](Exchange& exchange) {
    exchange.close_after();
    exchange.respond(200, "text/plain", "bye");
  };
  with_server({.handler = last}, [](Visitor& visitor) {
    visitor.say("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    visitor.hear_the_end();
    CHECK(visitor.has("Connection: close\r\n") && visitor.heard().ends_with("\r\n\r\nbye"));
  });
}

TEST(HttpServer, the_default_stack_lets_a_handler_call_snprintf) {
  const auto formatted = [](Exchange& exchange) {
    char text[128];
    const int size = snprintf(text, sizeof text, "%s has %d and %.2f\n", "this", 42, 0.1 + 0.2);
    exchange.respond(200, "text/plain", {text, static_cast<std::size_t>(size)});
  };
  with_server({.handler = formatted}, [](Visitor& visitor) {
    visitor.say("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    visitor.hear_until("has 42 and 0.30\n");
  });
}

TEST(HttpServer, flush_shows_the_client_what_is_written_so_far) {
  static std::atomic<bool> seen;
  const auto slow = [](Exchange& exchange) {
    exchange.start(200);
    if (!exchange.begin_chunked() || !exchange.write("first") || !exchange.flush()) return;
    // Ends when the client has seen the first part and says so.
    until([&] { return seen.load(); });
    static_cast<void>(exchange.write("second"));
  };
  seen = false;
  with_server({.handler = slow}, [](Visitor& visitor) {
    visitor.say("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    visitor.hear_until("first");
    CHECK_FALSE(visitor.has("second"));
    seen = true;
    visitor.hear_until("second");
  });
}

// stopped_beside_half_a_head has a server stop while a client owes the rest of a head, which it sends if `completes`.
template <class Ask>
void stopped_beside_half_a_head(Ask ask) {
  constexpr std::string_view kHalf = "GET / HTTP/1.1\r\nHost: localhost\r\n";
  TcpStream kept;  // open beyond the stop
  // By the head's own deadline the stop would come too late for run_beside.
  beside_server({.handler = echo, .header_timeout = 10min}, [&](Server& server, const Address&, Visitor& visitor) {
    visitor.say(kHalf);
    CHECK(until([&] { return server.counters().bytes_received.load() == kHalf.size(); }, soon()));
    ask(server, visitor);
    kept = std::move(visitor.stream);
  });
}

TEST(HttpServer, half_a_head_does_not_hold_up_the_stop) {
  stopped_beside_half_a_head([](Server&, Visitor&) {});
}

// The answer before has told the client that the connection stays open.
TEST(HttpServer, a_request_that_comes_before_its_connection_rests_is_answered_though_the_server_stops) {
  static std::atomic<Server*> stops;
  static std::atomic<int> client;
  constexpr static std::string_view kGet = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
  const auto handler = [](Exchange& exchange) {
    exchange.respond(200, "text/plain", "answer\n");
    if (Server* const server = stops.exchange(nullptr)) {
      server->begin_stop();
      static_cast<void>(::send(client, kGet.data(), kGet.size(), MSG_NOSIGNAL));
    }
  };
  beside_server({.handler = handler}, [&](Server& server, const Address&, Visitor& visitor) {
    client = visitor.stream.fd();
    stops = &server;
    visitor.say(kGet);
    visitor.hear_the_end();
    CHECK(visitor.heard().find("answer\n") != visitor.heard().rfind("answer\n"));
    CHECK(visitor.heard().find("Connection: close\r\n") > visitor.heard().find("answer\n"));
    // Without fibers a signal that comes before would cut it off.
    visitor.stream.close();
    CHECK(until([&] { return server.gauges().open == 0; }, soon()));
  });
}

TEST(HttpServer, who_asks_while_a_handler_computes_is_served_though_the_server_stops) {
  static std::atomic<Server*> stops;
  static Address where;
  static std::optional<TcpStream> other;
  constexpr static std::string_view kGet = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
  const auto handler = [](Exchange& exchange) {
    exchange.respond(200, "text/plain", "answer\n");
    if (Server* const server = stops.exchange(nullptr)) {
      other = std::move(*TcpStream::connect(where, soon()));
      static_cast<void>(::send(other->fd(), kGet.data(), kGet.size(), MSG_NOSIGNAL));
      server->begin_stop();
    }
  };
  beside_server({.handler = handler}, [&](Server& server, const Address& address, Visitor& visitor) {
    where = address;
    stops = &server;
    visitor.say(kGet);
    visitor.hear_the_end();
    char heard[512];
    std::size_t size = 0;
    while (const auto got = other->read(std::span(heard).subspan(size), soon())) size += *got;
    CHECK(std::string_view(heard, size).ends_with("answer\n"));
    other.reset();
    visitor.stream.close();
    CHECK(until([&] { return server.gauges().open == 0; }, soon()));
  });
}

#if !COIR_NO_ASYNC
TEST(HttpServer, half_a_head_has_a_moment_to_be_completed_while_the_server_stops) {
  stopped_beside_half_a_head([](Server& server, Visitor& visitor) {
    server.begin_stop();
    visitor.say("\r\n");
    visitor.hear_until("\r\n\r\n0\n");
  });
}

namespace {

// UnderWay is a request whose answer takes a moment more once the server stops.
struct UnderWay {
  std::atomic<bool> begun{false};
  void operator()(Exchange& exchange) {
    const coir::Shield shield(soon());
    begun = true;
    static_cast<void>(coir::sleep(50ms));
    exchange.respond(200, "text/plain", "whole\n");
  }
};

}  // namespace

TEST(HttpServer, a_deadline_around_serve_until_lets_end_what_is_under_way) {
  UnderWay request;
  auto server = Server::create({.handler = request});
  auto listener = TcpListener::listen(*Address::parse("127.0.0.1:0"));
  CHECK(server.has_value() && listener.has_value());
  const Address address = listener->local_address();
  CHECK(server->add(std::move(*listener)).has_value());
  std::size_t lost = 9;
  const auto ran = coir::run_until_idle({.workers = 1, .default_stack = 65'536}, [&] {
    CHECK(server->start().has_value());
    coir::Fiber client = coir::spawn([&] {
      visit_once(address, [](Visitor& visitor) {
        visitor.say("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        visitor.hear_until("\r\n\r\nwhole\n");
      });
    });
    CHECK(until([&] { return request.begun.load(); }, soon()));
    const coir::CancelScope scope(Deadline::at_ns(1));
    lost = server->serve_until({SIGUSR1}, 60s);
    const coir::Shield shield(soon());
    CHECK(client.join().has_value());
  });
  CHECK(ran.has_value());
  LONGS_EQUAL(0, lost);
}

TEST(HttpServer, a_listener_is_added_and_removed_while_it_serves) {
  ServerOptions options{.handler = [](Exchange& exchange) {
    exchange.respond(200, "text/plain", exchange.listener() == 7 ? "seven\n" : "none\n");
  }};
  auto server = Server::create(options);
  CHECK(server.has_value());
  bool kept = true;
  const auto ran = coir::run_until_idle({.default_stack = 65'536}, [&] {
    CHECK(server->start().has_value());
    constexpr std::string_view kGet = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    // More often than there are places for listeners.
    for (std::size_t i = 0; i < 3 * Server::kMaxListeners; ++i) {
      auto listener = TcpListener::listen(*Address::parse("127.0.0.1:0"));
      CHECK(listener.has_value());
      const Address address = listener->local_address();
      const auto number = server->add(std::move(*listener), nullptr, 7);
      CHECK(number.has_value());
      visit_once(address, [&](Visitor& visitor) {
        visitor.say(kGet);
        visitor.hear_until("\r\n\r\nseven\n");
        server->remove(*number);
        kept = kept && TcpStream::connect(address, soon()).error() == ErrorCode::system;
        visitor.have = 0;
        visitor.say(kGet);
        visitor.hear_until("\r\n\r\nseven\n");
      });
    }
    kept = kept && server->stop(soon()).has_value();
    auto late = TcpListener::listen(*Address::parse("127.0.0.1:0"));
    kept = kept && late && server->add(std::move(*late)).error() == ErrorCode::closed;
  });
  CHECK(ran.has_value());
  CHECK(kept);
}

namespace {

// expect_to_be_let_in has three clients wait at a listener, which `end` has the server close.
template <class End>
void expect_to_be_let_in(bool ask_before, End end) {
  constexpr std::string_view kGet = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
  auto server = Server::create({.handler = echo});
  CHECK(server.has_value());
  int served = 0;
  const auto ran = coir::run_until_idle({.workers = 1}, [&] {
    auto listener = TcpListener::listen(*Address::parse("127.0.0.1:0"));
    CHECK(listener.has_value());
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(listener->local_address().port());
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const auto number = server->add(std::move(*listener));
    CHECK(number && server->start());
    // Without a switch in between, so that the kernel alone knows of them.
    int clients[3];
    for (int& each : clients) {
      each = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      CHECK_EQUAL(0, ::connect(each, reinterpret_cast<const sockaddr*>(&to), sizeof to));
      if (ask_before) CHECK(::send(each, kGet.data(), kGet.size(), MSG_NOSIGNAL) > 0);
    }
    end(*server, *number);
    for (const int each : clients) {
      char answer[15] = {};
      if ((ask_before || ::send(each, kGet.data(), kGet.size(), MSG_NOSIGNAL) > 0) &&
          coir::wait(each, coir::Direction::readable, soon()) && ::recv(each, answer, sizeof answer, 0) > 0)
        served += std::string_view(answer, sizeof answer) == "HTTP/1.1 200 OK";
      coir::close_fd(each);
    }
    CHECK(server->stop(soon()).has_value());
  });
  CHECK(ran.has_value());
  LONGS_EQUAL(3, served);
}

}  // namespace

TEST(HttpServer, who_waits_at_a_listener_that_is_removed_is_served) {
  expect_to_be_let_in(false, [](Server& server, std::size_t number) { server.remove(number); });
}

TEST(HttpServer, who_has_asked_at_a_listener_is_served_though_the_server_stops) {
  expect_to_be_let_in(true, [](Server& server, std::size_t) { server.begin_stop(); });
}

TEST(HttpServer, idle_connections_are_closed_as_soon_as_the_stop_begins) {
  beside_server({.handler = echo, .idle_timeout = 10min}, [&](Server& server, const Address&, Visitor& visitor) {
    visitor.say("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    visitor.hear_until("\r\n\r\n0\n");
    CHECK(until([&] { return server.gauges().idle == 1; }, soon()));
    server.begin_stop();
    LONGS_EQUAL(0, server.gauges().open);
  });
}

// With one worker the server learns of nothing that comes while the fiber that stops it runs.
TEST(HttpServer, a_request_that_has_come_to_an_idle_connection_is_answered_though_the_server_stops) {
  auto server = Server::create({.handler = echo, .idle_timeout = 10min});
  auto listener = TcpListener::listen(*Address::parse("127.0.0.1:0"));
  CHECK(server.has_value() && listener.has_value());
  const Address address = listener->local_address();
  CHECK(server->add(std::move(*listener)).has_value());
  const auto ran = coir::run_until_idle({.workers = 1, .default_stack = 65'536}, [&] {
    CHECK(server->start().has_value());
    visit_once(address, [&](Visitor& visitor) {
      constexpr std::string_view kGet = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
      visitor.say(kGet);
      visitor.hear_until("\r\n\r\n0\n");
      CHECK(until([&] { return server->gauges().idle == 1; }, soon()));
      visitor.have = 0;
      CHECK(::send(visitor.stream.fd(), kGet.data(), kGet.size(), MSG_NOSIGNAL) > 0);
      server->begin_stop();
      visitor.hear_the_end();
      CHECK(visitor.has("Connection: close\r\n") && visitor.heard().ends_with("\r\n\r\n0\n"));
    });
    CHECK(server->stop(soon()).has_value());
  });
  CHECK(ran.has_value());
}
#endif

TEST(HttpServer, buffers_that_serve_nobody_are_given_back) {
  if (!coir::kFibers) return;  // there the one session stays
  coir::Account& held = coir::account::http;
  coir::Ledger::total().set_ceiling(64 << 20);
  with_server({.handler = echo}, [&](Visitor& visitor) {
    visitor.say("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    visitor.hear_until("\r\n\r\n0\n");
    CHECK(held.used() >= Server::request_bytes());
    // The session is still on its way out when its answer is here.
    const bool given_back = until(
        [&] {
          static_cast<void>(coir::Pressure::make_room(held, 1 << 30));
          return held.used() < Server::request_bytes() / 2;
        },
        soon());
    CHECK(given_back);
    visitor.have = 0;
    visitor.say("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    visitor.hear_until("\r\n\r\n0\n");
  });
  coir::Ledger::total().set_ceiling(SIZE_MAX);
}

TEST(HttpServer, a_client_that_asks_too_often_is_answered_429_and_may_ask_again) {
  const ServerOptions options{.handler = echo, .max_requests_per_client = 2};
  beside_server(options, [](Server& server, const Address&, Visitor& visitor) {
    for (int i = 0; i < 100; ++i) visitor.say("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    visitor.say("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    visitor.hear_the_end();
    CHECK(visitor.heard().starts_with("HTTP/1.1 200 ") && visitor.has("\r\n\r\n0\nHTTP/1.1 "));
    CHECK(visitor.has("HTTP/1.1 429 ") && visitor.has("\r\nRetry-After: 1\r\n"));
    CHECK(visitor.has("\r\nConnection: close\r\n"));
    CHECK(server.counters().limited_requests.load() > 10);
  });
}

TEST(HttpServer, a_client_with_too_many_connections_is_answered_429_until_one_is_closed) {
  const ServerOptions options{.handler = echo, .max_connections_per_client = 2};
  beside_server(options, [](Server& server, const Address& address, Visitor& visitor) {
    visitor.say("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    visitor.hear_until("\r\n\r\n0\n");
    // A third while there are two, then another in the second's place.
    visit_once(address, [&](Visitor& second) {
      second.say("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
      second.hear_until("\r\n\r\n0\n");
      visit_once(address, [](Visitor& third) {
        third.hear_the_end();
        CHECK(third.heard().starts_with("HTTP/1.1 429 ") && third.has("\r\nRetry-After: 1\r\n"));
      });
      LONGS_EQUAL(1, server.counters().limited_connections.load());
    });
    // The server learns of the closing when it may.
    bool served = false;
    const bool in_time = until(
        [&] {
          visit_once(address, [&](Visitor& again) {
            static_cast<void>(again.stream.write("GET / HTTP/1.0\r\n\r\n", soon()));
            auto got = again.stream.read(received, soon());
            served = got && std::string_view(received, *got).starts_with("HTTP/1.1 200 ");
          });
          return served;
        },
        soon());
    CHECK(in_time);
  });
}

TEST(HttpServer, options_that_cannot_work_are_refused) {
  CHECK(Server::create({}).error() == ErrorCode::invalid);
  CHECK(Server::create({.handler = echo, .max_connections = 0}).error() == ErrorCode::invalid);
  CHECK(Server::create({.handler = echo, .max_active = 0}).error() == ErrorCode::invalid);
  CHECK_EQUAL(coir::kFibers, Server::create({.handler = echo, .max_active = 2}).has_value());
  CHECK(Server::create({.handler = echo, .handler_stack = 128 << 10}).error() == ErrorCode::invalid);
  CHECK(Server::create({.handler = echo, .max_requests_per_client = 1'000'001}).error() == ErrorCode::invalid);
  ServerOptions large_head{.handler = echo};
  large_head.limits.max_head_bytes = 1 << 20;
  CHECK(Server::create(large_head).error() == ErrorCode::invalid);
}

}  // namespace http_server_test
