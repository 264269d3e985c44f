// A chat whose members rest: a socket that says nothing costs about 250 bytes, without fiber or buffer. A member's
// message is published to all members at once. The members here are coir's own clients.

#include <coir/fiber.h>
#include <coir/http/server.h>
#include <coir/runtime.h>
#include <coir/tcp.h>
#include <coir/websocket.h>
#include <coir/worker_stack.h>
#include <stdio.h>

#include <string_view>

using namespace std::chrono_literals;
using namespace coir::http;

namespace {

struct Chat {
  struct State {
    unsigned said = 0;  // by this member
  };

  // A client knows by the answer to its handshake that it is connected, and by this that it is a member.
  void opened(HubSocket& socket) {
    if (!socket.subscribe("everybody") || !socket.send_text("welcome")) {
      static_cast<void>(socket.close(CloseCode::try_again_later));
    }
  }
  void message(HubSocket& socket, State& state, const WebSocketMessage& message) {
    if (++state.said > 100) return static_cast<void>(socket.close(CloseCode::policy_violation, "too much"));
    socket.publish("everybody", message.bytes);
  }
};

std::expected<WebSocket, coir::Error> member(const coir::Address& server) {
  auto connection = coir::TcpStream::connect(server, coir::Deadline::after(5s));
  if (!connection) return std::unexpected(connection.error());
  auto member = WebSocket::connect(std::move(*connection), {.host = "localhost", .target = "/chat"});
  if (!member) return member;
  if (const auto welcome = member->receive(coir::Deadline::after(5s)); !welcome)
    return std::unexpected(welcome.error());
  return member;
}

bool hears(const char* who, WebSocket& member) {
  const auto heard = member.receive(coir::Deadline::after(5s));
  if (!heard) return false;
  coir::on_worker_stack(
      [&] { printf("%s hears: %.*s\n", who, static_cast<int>(heard->bytes.size()), heard->bytes.data()); });
  return true;
}

bool talk(const coir::Address& server) {
  auto ada = member(server), bob = member(server);
  if (!ada || !bob || !ada->send_text("anybody here?") || !hears("bob", *bob) || !hears("ada", *ada)) return false;
  return bob->send_text("me") && hears("ada", *ada) && hears("bob", *bob) && ada->close() && bob->close();
}

}  // namespace

int main() {
  return coir::run([] {
    WebSocketHub<Chat> chat({.max_sockets = 100});
    auto server = Server::create(answered_by(chat));
    auto listener = coir::TcpListener::listen(*coir::Address::parse("127.0.0.1:0"));
    if (!server || !listener) return 1;
    const coir::Address address = listener->local_address();
    if (!server->add(std::move(*listener)) || !server->start()) return 1;
    const bool talked = talk(address);
    return server->stop(coir::Deadline::after(5s)) && talked ? 0 : 1;
  });
}
