// Want of memory or descriptors at any one point of a WebSocket's life, of a resting one's and of a fiber's: the n-th
// charge to the ledger is refused, or the n-th call to the kernel of a kind fails, for n = 1, 2, 3 ... until a life meets
// none. The client is refused or its connection ends, never left waiting; the next lives as if nothing had been; nothing
// is left over.

#include <coir/websocket.h>

#include <optional>

#include "tests/unit/http/faulty_streams.h"

namespace socket_faults_test {

using namespace coir::http;
using namespace coir::test;
using namespace std::chrono_literals;

namespace {

// More than the kernel takes for a client that does not read.
constexpr std::size_t kLargeText = 200'000;

struct Program {
  struct State {
    std::uint64_t number = 0;
  };
  void opened(HubSocket& socket) { static_cast<void>(socket.subscribe("all")); }
  void message(HubSocket& socket, State&, const WebSocketMessage& message) {
    const std::string_view answer = message.bytes == "much" ? std::string_view(large, kLargeText) : message.bytes;
    if (!socket.send_text(answer)) static_cast<void>(socket.close(CloseCode::try_again_later));
    socket.publish("all", "to all");
  }
};

std::optional<WebSocketHub<Program>> g_hub;
std::atomic<int> g_serving;

bool answer(Exchange& exchange) {
  if (exchange.request().path == "/rest") return (*g_hub)(exchange), true;
  if (exchange.request().path == "/publish") {
    g_hub->publish("all", "news");
    exchange.respond(200, "text/plain", "");
    return true;
  }
  if (exchange.request().path != "/fiber") return false;
  auto socket =
      accept_websocket(exchange, {.options = {.ping_after = 24h, .message_timeout = 24h, .close_timeout = 20ms}});
  if (!socket) return true;
  ++g_serving;
  while (auto message = socket->receive()) {
    const std::string_view answer = message->bytes == "much" ? std::string_view(large, kLargeText) : message->bytes;
    if (!socket->send_text(answer) || !socket->send_text("to all")) break;
  }
  --g_serving;
  return true;
}

bool opens(StreamPeer& peer, std::string_view path) {
  return peer.say("GET ") && peer.say(path) &&
         peer.say(
             " HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: "
             "13\r\n"
             "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n") &&
         peer.hears_head("101");
}

// converses says a message, halves of one with a ping between, and the end; all masked by zeros.
bool converses(StreamPeer& peer) {
  peer.say({"\x81\x82\0\0\0\0hi", 8});
  if (!peer.hears({"\x81\x02hi\x81\x06to all", 12})) return false;
  peer.say({"\x01\x81\0\0\0\0a", 7});
  peer.say({"\x89\x81\0\0\0\0p", 7});
  if (!peer.hears({"\x8a\x01p", 3})) return false;
  peer.say({"\x80\x81\0\0\0\0b", 7});
  if (!peer.hears({"\x81\x02"
                   "ab\x81\x06to all",
                   12})) {
    return false;
  }
  peer.say({"\x88\x82\0\0\0\0\x03\xe8", 8});
  return peer.hears({"\x88\x02\x03\xe8", 4});
}

// vanishes after half a frame.
bool vanishes(StreamPeer& peer) {
  return peer.say({"\x81\x85\0\0\0\0he", 8});
}

// reads_slowly takes a message that is larger than what the kernel keeps for it.
bool reads_slowly(StreamPeer& peer) {
  peer.say({"\x81\x84\0\0\0\0much", 10});
  if (!peer.finds("xx\x81\x06to all")) return false;
  peer.say({"\x88\x82\0\0\0\0\x03\xe8", 8});
  return peer.hears({"\x88\x02\x03\xe8", 4});
}

constexpr auto kRests = [](StreamPeer& peer) { return opens(peer, "/rest"); };
constexpr auto kOnAFiber = [](StreamPeer& peer) { return opens(peer, "/fiber"); };

constexpr StreamLife kLives[] = {
    {"a resting socket", kRests, converses},
    {"a socket on a fiber", kOnAFiber, converses},
    {"a resting socket that vanishes", kRests, vanishes},
    {"a socket on a fiber that vanishes", kOnAFiber, vanishes},
    {"a resting socket that is slow", kRests, reads_slowly, 4096},
    {"a socket on a fiber that is slow", kOnAFiber, reads_slowly, 4096},
};

}  // namespace

struct SocketFaultsServer : FaultyStreams {
  bool prepare() override {
    g_hub.emplace(WebSocketHubOptions{.max_sockets = 8,
                                      .socket = {.max_message = 65'536, .ping_after = 24h, .close_timeout = 20ms}});
    site.also = answer;
    return true;
  }
  void release() override {
    LONGS_EQUAL(0, g_hub->subscribers("all"));
    g_hub.reset();
    LONGS_EQUAL(0, coir::account::buffers.used() - coir::Buffer::spare_bytes());
  }
  std::size_t kept() const override { return g_hub->sockets() + static_cast<std::size_t>(g_serving); }
};

TEST_GROUP_BASE(SocketFaults, SocketFaultsServer) {};

TEST(SocketFaults, any_failure_ends_one_connection) {
  whatever_fails(kLives);
  met({Call::charge, Call::close, Call::recv, Call::send});
}

TEST(SocketFaults, a_server_stops_though_something_fails) {
  a_stop_while_something_fails(std::span(kLives).first(2));
}

TEST(SocketFaults, a_message_from_elsewhere_that_cannot_be_sent_ends_the_socket) {
  for (const Setting& each : std::span(kSettings).first(kTried)) {
    setting = each;
    stage = "a socket that rests";
    CHECK(begin());
    StreamPeer peer(port);
    require(opens(peer, "/rest"), "does not open though nothing fails");
    // A message published during the socket's own call goes out with that call: the socket has to rest.
    unsigned failed = 0;
    while (failed == 0) {
      fault = {.call = Call::sendmsg, .error = EPIPE};
      inject(fault);
      StreamPeer publisher(port);
      require(publisher.say("GET /publish HTTP/1.1\r\nHost: localhost\r\n\r\n") && publisher.hears_head("200"),
              "does not publish");
      failed = withdraw();
    }
    static_cast<void>(peer.ends());
    require(!peer.late(), "is left waiting");
    end();
    nothing_is_left();
  }
}

}  // namespace socket_faults_test
