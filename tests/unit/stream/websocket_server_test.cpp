// accept_websocket, a handler and its client.

#include <CppUTest/TestHarness.h>
#include <coir/detail/accounts.h>
#include <coir/fiber.h>
#include <coir/http/websocket.h>

#include <array>
#include <atomic>
#include <optional>
#include <string_view>

#include "tests/unit/stream/socket_server.h"

namespace websocket_server_test {

using namespace coir::http;
using namespace coir::test;
using namespace std::chrono_literals;
using coir::Buffer;
using coir::ErrorCode;

namespace {

std::atomic<int> g_serving, g_refused;
std::atomic<unsigned> g_code, g_error;
constexpr std::string_view kSpoken[] = {"echo"};

void handler(Exchange& exchange) {
  auto socket = accept_websocket(exchange, {.subprotocols = kSpoken});
  if (!socket) {
    ++g_refused;
    return;
  }
  ++g_serving;
  for (;;) {
    auto message = socket->receive();
    if (!message) {
      g_error = static_cast<unsigned>(message.error().code);
      break;
    }
    if (message->bytes == "bye") {
      static_cast<void>(socket->close(CloseCode{4000}));
      break;
    }
    const auto sent = message->text ? socket->send_text(message->bytes) : socket->send_binary(message->bytes);
    if (!sent) break;
  }
  g_code = static_cast<unsigned>(socket->close_code());
  --g_serving;
}

}  // namespace

struct WebSocketServerGroup : SocketServer {
  std::size_t charged = 0;

  template <class Body>
  void serving(Body body, ServerOptions options = {.handler = handler}) {
    charged = coir::account::connections.used();
    g_serving = g_refused = 0;
    g_code = g_error = 0;
    within(options, [](auto run) { run(); }, body);
    LONGS_EQUAL(0, g_serving.load());
    LONGS_EQUAL(charged, coir::account::connections.used());
    LONGS_EQUAL(0, borrowed());
  }
  static std::size_t borrowed() { return coir::account::buffers.used() - Buffer::spare_bytes(); }
};

TEST_GROUP_BASE(WebSocketServer, WebSocketServerGroup) {};

TEST(WebSocketServer, a_handler_goes_on_with_its_client) {
  serving([&] {
    auto peer = joined(std::string_view("\x81\x82\0\0\0\0hi", 8));
    expect(peer.hear().is(Opcode::text, "hi"));
    for (int i = 0; i < 10; ++i) expect(echoes(peer));
    expect(peer.close(CloseCode{4001}) && peer.hear().closes(CloseCode{4001}) && peer.ended());
    until([] { return g_serving == 0; });
    expect(g_code == 4001);
    until([&] { return server->gauges().open == 0; });
  });
}

TEST(WebSocketServer, a_message_of_many_kilobytes_comes_with_the_request) {
  serving([&] { expect_long_messages_with_the_request(); });
}

TEST(WebSocketServer, a_handler_closes) {
  serving([&] {
    auto peer = joined();
    expect(peer.say(Opcode::text, "bye") && peer.hear().closes(CloseCode{4000}));
    expect(peer.close(CloseCode{4000}) && peer.ended());
  });
}

TEST(WebSocketServer, requests_that_are_none_are_refused_and_the_connection_goes_on) {
  serving([&] {
    auto stream = connected();
    char head[512];
    for (const auto& [request, status] :
         {std::pair{"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 426 "},
          std::pair{"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                    "Sec-WebSocket-Version: 13\r\n\r\n",
                    "HTTP/1.1 400 "}}) {
      expect(answer_to(stream, request, head).starts_with(status));
      char content[64];
      expect(stream.read(content, patience()).has_value());
    }
    until([] { return g_refused >= 2; });
  });
}

TEST(WebSocketServer, while_it_waits_it_holds_its_stack_alone) {
  serving([&] {
    std::array<std::optional<RawPeer>, 10> peers;
    for (auto& each : peers) {
      each.emplace(joined());
      expect(echoes(*each));
    }
    until([] { return borrowed() == 0; });
    // Neither a session.
    until([&] { return server->gauges().active == 0; });
    expect(server->gauges().open == peers.size());
  });
}

TEST(WebSocketServer, when_the_server_stops_the_client_is_told_1001) {
  serving([&] {
    auto first = joined(), second = joined();
    expect(echoes(first) && echoes(second));
    server->begin_stop();
    expect(first.hear().closes(CloseCode::going_away) && second.hear().closes(CloseCode::going_away));
    expect(first.close(CloseCode::going_away) && first.ended());
    second.stream().close();
    until([] { return g_serving == 0; });
    expect(server->stop(patience()).has_value());
  });
}

TEST(WebSocketServer, a_message_that_comes_with_the_stop_is_received_still) {
  serving([&] {
    auto peer = joined();
    expect(echoes(peer));
    server->begin_stop();
    expect(peer.hear().closes(CloseCode::going_away));
    // "late" and the close frame, masked by zeros, at once: the handler, whose answer has no place behind a close frame,
    // may end the connection before it has read the second.
    expect(peer.raw({"\x81\x84\0\0\0\0late\x88\x82\0\0\0\0\x03\xe9", 18}) && peer.ended());
    until([] { return g_serving == 0; });
    expect(g_error == 0);
  });
}

TEST(WebSocketServer, hears_what_has_come_while_its_handler_waited_for_something_else) {
  static std::atomic<int> waiting;
  static coir::Event go;
  const auto late = [](Exchange& exchange) {
    ++waiting;
    static_cast<void>(go.wait(patience()));
    handler(exchange);
  };
  serving(
      [&] {
        waiting = 0;
        go.reset();
        auto peer = joined_early(waiting, go, std::string_view("\x81\x82\0\0\0\0hi", 8));
        expect(peer.hear().is(Opcode::text, "hi"));
      },
      {.handler = late});
}

#if COIR_TLS
TEST(WebSocketServer, by_tls_it_does_the_same) {
  const auto context = authority().server();
  coir::TlsContextSlot slot(context);
  tls = &slot;
  serving([&] {
    auto first = joined(), second = joined();
    for (int i = 0; i < 3; ++i) expect(echoes(first) && echoes(second));
    until([] { return borrowed() == 0; });
    server->begin_stop();
    expect(first.hear().closes(CloseCode::going_away) && second.hear().closes(CloseCode::going_away));
  });
}
#endif

}  // namespace websocket_server_test
