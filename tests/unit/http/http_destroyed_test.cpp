// A Server that is destroyed too early is a line, not a crash.

#include <CppUTest/TestHarness.h>
#include <coir/cancel_scope.h>
#include <coir/event.h>
#include <coir/fiber.h>
#include <coir/http/server.h>
#include <coir/runtime.h>
#include <coir/signal.h>
#include <coir/tcp.h>
#include <signal.h>
#include <unistd.h>
#if COIR_STREAMS
#include <coir/events.h>
#endif

#include <optional>

#include "tests/support/child.h"
#include "tests/support/everywhere.h"
#include "tests/support/scale.h"
#include "tests/support/until.h"

namespace http_destroyed_test {

using coir::Address;
using coir::Deadline;
using coir::Event;
using coir::TcpListener;
using coir::TcpStream;
using coir::http::Exchange;
using coir::http::Server;
using namespace std::chrono_literals;

namespace {

struct Gates {
  Event inside, never;
};

void wait(Gates& gates) {
  gates.inside.set();
  static_cast<void>(gates.never.wait());
}

// with_a_request calls `body` while a handler waits.
template <class Body>
int with_a_request(std::optional<Server>& server, Body body) {
  static Gates gates;
  return coir::run([&] {
    server.emplace(*Server::create({.handler = [](Exchange&) { wait(gates); }}));
    auto listener = *TcpListener::listen(*Address::parse("127.0.0.1:0"));
    const Address address = listener.local_address();
    if (!server->add(std::move(listener)) || !server->start()) return 9;
    auto client = TcpStream::connect(address, Deadline::after(60s));
    if (!client || !client->write("GET / HTTP/1.0\r\n\r\n") || !gates.inside.wait(Deadline::after(60s))) return 9;
    body();
    return 0;
  });
}

}  // namespace

TEST_GROUP(Destroyed) {};

TEST(Destroyed, a_server_whose_handlers_run_ends_the_process_with_a_line) {
  const auto end = coir::test::in_child([] {
    std::optional<Server> server;
    return with_a_request(server, [&] { server.reset(); });
  });
  CHECK_TRUE(end.signal != 0 || end.status > 1);
  CHECK_TRUE(end.wrote("coir: a server is destroyed while handlers of its run"));
  CHECK_TRUE(end.wrote("\"main\", spawned at "));
}

TEST(Destroyed, one_that_outlives_the_run_may_be_destroyed_with_what_was_cut_off) {
  const auto end = coir::test::in_child([] {
    std::optional<Server> server;
    const int status = with_a_request(server, [&] {
      server->begin_stop();
      coir::shutdown();
    });
    server.reset();
    return status;
  });
  LONGS_EQUAL(0, end.status);
  STRCMP_EQUAL("", end.output);
}

namespace {

// read_slowly waits for content, and cleans up for a while when that ends.
void read_slowly(Gates& gates, Exchange& exchange) {
  gates.inside.set();
  char piece[64];
  while (exchange.read_body(piece)) {
  }
  const coir::Shield shield(Deadline::after(60s));
  for (int turn = 0; turn < 10; ++turn) coir::yield_to_events();
  gates.never.set();
}

}  // namespace

// As the header of Server has it: all of it is a local of the run's body.
TEST(Destroyed, a_server_of_the_runs_body_may_go_once_serve_until_has_returned) {
  const auto end = coir::test::in_child([] {
    return coir::run([] {
      Gates gates;
      auto server = Server::create({.handler = [&gates](Exchange& exchange) { read_slowly(gates, exchange); }});
      auto listener = *TcpListener::listen(*Address::parse("127.0.0.1:0"));
      const Address address = listener.local_address();
      if (!coir::catch_signals({SIGTERM}) || !server->add(std::move(listener)) || !server->start()) return 9;
      auto client = TcpStream::connect(address, Deadline::after(60s));
      const bool asked = client && client->write("PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nhalf");
      if (!asked || !gates.inside.wait(Deadline::after(60s))) return 9;
      ::kill(::getpid(), SIGTERM);
      if (server->serve_until({SIGTERM}, 10ms) != 1) return 8;
      return gates.never.is_set() ? 0 : 7;
    });
  });
  LONGS_EQUAL(0, end.status);
  STRCMP_EQUAL("", end.output);
}

namespace {

// An end takes ten milliseconds at least.
constexpr int kRounds =
    coir::test::scaled({.plain = 30, .address_sanitized = 10, .thread_sanitized = 10, .emulated = 5});

struct Progress {
  std::atomic<int> closed{0}, ended{0};
  std::atomic<bool> go{false};
};

#if COIR_STREAMS
// close_and_go_on ends its connection long before it returns.
void close_and_go_on(Progress& progress, Exchange& exchange) {
  static_cast<void>(coir::http::EventStream::open(exchange));
  ++progress.closed;
  while (!progress.go) coir::yield_to_events();
  ++progress.ended;
}
#endif

void answer(Exchange& exchange) {
  exchange.respond(200, "text/plain", "hello\n");
}

Deadline soon() {
  return Deadline::after(100s);
}

// heard_all asks for something and reads until the end.
bool heard_all(const Address& address) {
  auto client = TcpStream::connect(address, soon());
  if (!client || !client->write("GET / HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n", soon())) return false;
  char piece[512];
  for (;;) {
    if (const auto got = client->read(piece, soon()); !got) return got.error() == coir::ErrorCode::end_of_stream;
  }
}

}  // namespace

TEST_GROUP_BASE(Stopped, coir::test::Everywhere) {};

#if COIR_STREAMS
TEST(Stopped, stop_waits_for_a_handler_whose_connection_is_closed) {
  everywhere([&] {
    Progress progress;
    auto server = Server::create({.handler = [&progress](Exchange& exchange) { close_and_go_on(progress, exchange); }});
    auto listener = TcpListener::listen(*Address::parse("127.0.0.1:0"));
    const Address address = listener->local_address();
    expect(server && server->add(std::move(*listener)) && server->start());
    expect(heard_all(address) && coir::test::until([&] { return progress.closed == 1; }, soon()));
    expect(server->gauges().open == 0);
    const auto early = server->stop(Deadline::after(200ms));
    expect(!early && early.error() == coir::ErrorCode::timed_out);
    progress.go = true;
    expect(server->stop(soon()) && progress.ended == 1);
  });
}
#endif

// The last that a fiber does for a connection comes after its client has heard the end of it.
TEST(Stopped, a_server_that_has_stopped_may_be_destroyed_at_once) {
  everywhere([&] {
    for (int i = 0; i < kRounds; ++i) {
      auto server = Server::create({.handler = answer});
      auto listener = TcpListener::listen(*Address::parse("127.0.0.1:0"));
      const Address address = listener->local_address();
      expect(server && server->add(std::move(*listener)) && server->start());
      expect(heard_all(address));
      expect(server->stop(soon()).has_value());
    }
  });
}

}  // namespace http_destroyed_test
