// A handler that needs more stack than it has is told by its route.

#include <CppUTest/TestHarness.h>
#include <coir/http/routes.h>
#include <coir/http/server.h>
#include <coir/runtime.h>
#include <coir/tcp.h>
#include <signal.h>

#include "tests/support/child.h"

namespace http_overflow_test {

using coir::Address;
using coir::Deadline;
using coir::TcpListener;
using coir::TcpStream;
using namespace std::chrono_literals;
using namespace coir::http;

namespace {

// Each call takes a frame of its own, which is written to.
[[gnu::noinline]] int descend(int depth) {
  volatile char frame[200];
  for (volatile char& byte : frame) byte = static_cast<char>(depth);
  const int deeper = depth > 0 ? descend(depth - 1) : 0;
  return deeper + frame[depth % 200];
}

void deep(Exchange& exchange, std::string_view) {
  exchange.respond_status(descend(1'000'000) == 0 ? 200 : 204);
}

}  // namespace

TEST_GROUP(HttpOverflow) {};

TEST(HttpOverflow, in_a_handler_names_its_route_and_how_it_came_there) {
  const auto end = coir::test::in_child([] {
    return coir::run([] {
      auto app = routes(mount<"/things">(routes(get<"/{name}/deep">(deep))));
      auto server = Server::create(answered_by(app));
      auto listener = *TcpListener::listen(*Address::parse("127.0.0.1:0"));
      const Address address = listener.local_address();
      if (!server->add(std::move(listener)) || !server->start()) return 9;
      auto client = TcpStream::connect(address, Deadline::after(60s));
      if (!client || !client->write("GET /things/one/deep HTTP/1.0\r\n\r\n")) return 9;
      char byte[1];
      static_cast<void>(client->read(byte, Deadline::after(60s)));
      return 8;
    });
  });
  CHECK_TRUE(end.signal == SIGSEGV || end.signal == SIGBUS);
  CHECK_TRUE(end.wrote("coir: fiber /things/{name}/deep (spawned at "));
  CHECK_TRUE(end.wrote(") overflowed its 16 KB stack\n"));
  // The calls follow, the innermost first: more than one.
  CHECK_TRUE(end.wrote(" KB stack\ncoir:     0x"));
  CHECK_TRUE(end.lines() > 2);
}

}  // namespace http_overflow_test
