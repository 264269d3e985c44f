// A Server that is destroyed too early is a line, not a crash.

#include <CppUTest/TestHarness.h>
#include <coir/event.h>
#include <coir/http/server.h>
#include <coir/net/tcp.h>
#include <coir/runtime.h>

#include <optional>

#include "tests/support/child.h"

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

void wait(Exchange& exchange) {
  auto& gates = exchange.context<Gates>();
  gates.inside.set();
  static_cast<void>(gates.never.wait());
}

// with_a_request calls `body` while a handler waits.
template <class Body>
int with_a_request(std::optional<Server>& server, Body body) {
  static Gates gates;
  return coir::run([&] {
    server.emplace(*Server::create({.handler = wait, .context = &gates}));
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

TEST_GROUP(Destroyed){};

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
