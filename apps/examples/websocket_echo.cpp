// An echo server by WebSocket, one fiber for each client: the handler accepts, and then reads from top to bottom. While
// it waits for a message it holds no buffer.
//
//   websocket_echo :8080    serves ws://<this machine>:8080/ until SIGTERM
//   websocket_echo          has a client of its own say two words, and ends

#include <coir/http.h>
#include <coir/http/client.h>
#include <coir/runtime.h>
#include <coir/websocket.h>
#include <coir/worker_stack.h>
#include <stdio.h>

#include "local_site.h"

using namespace std::chrono_literals;
using namespace coir::http;

namespace {

void echo(Exchange& exchange) {
  auto socket = accept_websocket(exchange);
  if (!socket) return;  // it has been answered: 400, 403, 405 or 426
  while (auto message = socket->receive()) {
    const auto sent = message->text ? socket->send_text(message->bytes) : socket->send_binary(message->bytes);
    if (!sent) return;
  }
}

std::expected<void, coir::Error> talk(const LocalSite& site) {
  auto client = Client::create();
  if (!client) return std::unexpected(client.error());
  auto socket = connect_websocket(*client, site.url("/echo", "ws"), {}, coir::Deadline::after(5s));
  if (!socket) return std::unexpected(socket.error());
  for (const std::string_view word : {"coconut", "fibre"}) {
    if (auto sent = socket->send_text(word); !sent) return sent;
    auto answer = socket->receive(coir::Deadline::after(5s));
    if (!answer) return std::unexpected(answer.error());
    coir::on_worker_stack([&] { printf("%.*s\n", static_cast<int>(answer->bytes.size()), answer->bytes.data()); });
  }
  return socket->close();
}

}  // namespace

int main(int count, char** words) {
  if (count > 1) return serve({.name = "websocket_echo", .listen = words[1]}, echo);
  return coir::run([] { return talk(LocalSite({.handler = echo})); });
}
