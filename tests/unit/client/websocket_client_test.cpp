// connect_websocket, called from a thread and from fibers.

#include <coir/http/websocket.h>

#include <CppUTest/TestHarness.h>
#include <stdlib.h>
#include <string.h>

#include <atomic>
#include <memory>

#include "net/src/websocket/accept.h"
#include "tests/support/both_sides.h"
#include "tests/unit/client/scripted_server.h"

namespace websocket_client_test {

using namespace std::chrono_literals;
using namespace coir::http;
using coir::Deadline;
using coir::Error;
using coir::ErrorCode;
using coir::test::Peer;
using coir::test::ScriptedServer;

namespace {

Deadline patience() {
  return Deadline::after(60s);
}

// Asked is a server that speaks WebSocket when asked for "/live?x=1", says one message and reads until the end.
struct Asked {
  const char* before = "";  // what it says before its 101
  bool blanks = false;      // blanks stand behind its values
  const char* field = "";   // a line that the request has to have
  std::size_t more = 0;     // bytes in a message that comes with its 101
  std::atomic<bool> right{false};
  std::atomic<int> basics{0};
  ScriptedServer server{[this](Peer& peer) { serve(peer); }};

  void serve(Peer& peer) {
    std::string_view head = peer.hear();
    while (head.starts_with("GET /page ")) {
      peer.say("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
      head = peer.hear();
    }
    if (head.starts_with("CONNECT ")) {
      tunnelled = head.starts_with("CONNECT board.test:80 HTTP/1.1\r\n");
      peer.say("HTTP/1.1 200 OK\r\n\r\n");
      head = peer.hear();
    }
    right = head.starts_with("GET /live?x=1 HTTP/1.1\r\n") && head.find("\r\nX-Own: yes\r\n") != head.npos &&
            head.find(field) != head.npos;
    basics = head.find("Authorization: Basic") != head.npos;
    constexpr std::string_view kKey = "Sec-WebSocket-Key: ";
    const std::size_t at = head.find(kKey);
    if (!right || at == head.npos) {
      peer.say("HTTP/1.1 404 None\r\nContent-Length: 0\r\n\r\n");
      return;
    }
    const auto accept = websocket_accept(head.substr(at + kKey.size()));
    peer.say(before);
    peer.say(blanks ? "HTTP/1.1 101 Go\r\nUpgrade: websocket \t\r\nConnection: Upgrade \r\nSec-WebSocket-Accept: "
                    : "HTTP/1.1 101 Go\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ");
    peer.say({accept.data(), accept.size()});
    if (more != 0) {
      // In one piece with the end of its head, as a server that is in haste sends.
      const std::unique_ptr<char[]> text(new char[8 + more]);
      const unsigned char front[] = {
          '\r', '\n', '\r', '\n', 0x82, 126, static_cast<unsigned char>(more >> 8), static_cast<unsigned char>(more)};
      memcpy(text.get(), front, sizeof front);
      memset(text.get() + sizeof front, 'x', more);
      peer.say({text.get(), sizeof front + more});
      return peer.until_gone();
    }
    peer.say(blanks ? "  \r\n\r\n\x81\x05hello" : "\r\n\r\n\x81\x05hello");
    peer.until_gone();
  }
  std::atomic<bool> tunnelled{false};
};

constexpr WebSocketWish kWish{.fields = "X-Own: yes\r\n"};

}  // namespace

TEST_GROUP_BASE(WebSocketClient, coir::test::BothSides) {};

TEST(WebSocketClient, goes_to_the_path_and_query_of_its_address) {
  both_sides([&] {
    Asked asked;
    auto client = Client::create();
    auto socket = connect_websocket(*client, asked.server.url("/live?x=1", "ws"), kWish, patience());
    expect(socket.has_value() && asked.right);
    if (!socket) return;
    const auto message = socket->receive();
    expect(message && message->text && message->bytes == "hello");
    // The socket is no connection of the client's.
    expect(client->open() == 0);
  });
}

TEST(WebSocketClient, takes_no_connection_that_rests) {
  both_sides([&] {
    Asked asked;
    auto client = Client::create();
    expect(client->get(asked.server.url("/page"), {.deadline = patience()}).has_value() && client->resting() == 1);
    auto socket = connect_websocket(*client, asked.server.url("/live?x=1", "ws"), kWish, patience());
    expect(socket.has_value() && asked.server.connections() == 2 && client->resting() == 1);
  });
}

TEST(WebSocketClient, tells_what_is_no_websocket_and_no_address) {
  both_sides([&] {
    Asked asked;
    auto client = Client::create();
    const auto failed = [&](std::string_view url) {
      const auto socket = connect_websocket(*client, url, kWish, patience());
      return socket ? Error{} : socket.error();
    };
    const Error none = failed(asked.server.url("/other", "ws"));
    expect(none == ErrorCode::protocol && none.sys == 404);
    expect(failed(asked.server.url("/live?x=1", "http")) == ErrorCode::unsupported);
    expect(failed("ws://") == ErrorCode::invalid);
    expect(failed("ws://a b/") == ErrorCode::invalid);
  });
}

TEST(WebSocketClient, takes_blanks_behind_values_and_heads_before_the_last) {
  const auto opens = [&](Asked& asked) {
    auto client = Client::create();
    auto socket = connect_websocket(*client, asked.server.url("/live?x=1", "ws"), kWish, patience());
    if (!socket) return false;
    const auto message = socket->receive();
    return message && message->bytes == "hello";
  };
  both_sides([&] {
    Asked blanks{.blanks = true};
    expect(opens(blanks));
    Asked early{.before = "HTTP/1.1 100 Go on\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"};
    expect(opens(early));
  });
}

TEST(WebSocketClient, takes_a_message_of_many_kilobytes_behind_the_answer) {
  both_sides([&] {
    for (const std::size_t size : {4'000u, 4'700u, 20'000u}) {
      Asked asked{.more = size};
      auto client = Client::create();
      auto socket = connect_websocket(*client, asked.server.url("/live?x=1", "ws"), kWish, patience());
      expect(socket.has_value());
      const auto message = socket ? socket->receive() : std::unexpected(Error{ErrorCode::busy});
      expect(message && message->bytes.size() == size);
    }
  });
}

TEST(WebSocketClient, says_who_it_is_by_its_address) {
  both_sides([&] {
    // "me:p w"
    Asked asked{.field = "\r\nAuthorization: Basic bWU6cCB3\r\n"};
    char url[64];
    snprintf(url, sizeof url, "ws://me:p%%20w@127.0.0.1:%u/live?x=1", asked.server.port());
    auto client = Client::create();
    expect(connect_websocket(*client, url, kWish, patience()).has_value() && asked.right);
    // A field of the program's own goes before.
    Asked own{.field = "\r\nauthorization: Bearer 1\r\n"};
    snprintf(url, sizeof url, "ws://me:p%%20w@127.0.0.1:%u/live?x=1", own.server.port());
    const WebSocketWish wish{.fields = "X-Own: yes\r\nauthorization: Bearer 1\r\n"};
    expect(connect_websocket(*client, url, wish, patience()).has_value() && own.right && own.basics == 0);
    // One that decodes to nothing is an address that is wrong.
    snprintf(url, sizeof url, "ws://%%zz@127.0.0.1:%u/live?x=1", own.server.port());
    const auto none = connect_websocket(*client, url, kWish, patience());
    expect(!none && none.error() == ErrorCode::invalid);
  });
}

TEST(WebSocketClient, asks_a_proxy_for_a_tunnel) {
  both_sides([&] {
    Asked proxy;
    char variable[64];
    snprintf(variable, sizeof variable, "http://127.0.0.1:%u", proxy.server.port());
    setenv("http_proxy", variable, 1);
    auto client = Client::create();
    unsetenv("http_proxy");
    auto socket = connect_websocket(*client, "ws://board.test/live?x=1", kWish, patience());
    expect(socket.has_value() && proxy.right && proxy.tunnelled);
    if (socket) expect(socket->receive().has_value());
  });
}

}  // namespace websocket_client_test
