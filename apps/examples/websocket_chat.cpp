// A chat whose members rest: a socket that says nothing costs about 250 bytes, without fiber or buffer. A member's
// message is published to all members at once.
//
//   websocket_chat :8080    serves ws://<this machine>:8080/chat until SIGTERM
//   websocket_chat          has two members of its own talk, and ends

#include <coir/http.h>
#include <coir/http/client.h>
#include <coir/runtime.h>
#include <coir/websocket.h>
#include <coir/worker_stack.h>
#include <stdio.h>

#include <string_view>

#include "local_site.h"

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

std::expected<WebSocket, coir::Error> member(Client& client, const LocalSite& site) {
  auto member = connect_websocket(client, site.url("/chat", "ws"), {}, coir::Deadline::after(5s));
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

bool talk(const LocalSite& site) {
  auto client = Client::create();
  if (!client) return false;
  auto ada = member(*client, site), bob = member(*client, site);
  if (!ada || !bob || !ada->send_text("anybody here?") || !hears("bob", *bob) || !hears("ada", *ada)) return false;
  return bob->send_text("me") && hears("ada", *ada) && hears("bob", *bob) && ada->close() && bob->close();
}

}  // namespace

int main(int count, char** words) {
  WebSocketHub<Chat> chat({.max_sockets = 100});
  auto app = routes(get<"/chat">(chat));
  if (count > 1) return serve({.name = "websocket_chat", .listen = words[1]}, app);
  return coir::run([&] { return talk(LocalSite(answered_by(app))) ? 0 : 1; });
}
