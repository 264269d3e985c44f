// An echo server by WebSocket, one fiber for each client: the handler accepts, and then reads from top to bottom. While
// it waits for a message it holds no buffer. The client here is coir's own.

#include <coir/fiber.h>
#include <coir/http/server.h>
#include <coir/http/websocket.h>
#include <coir/runtime.h>
#include <coir/tcp.h>
#include <coir/worker_stack.h>
#include <stdio.h>

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

std::expected<void, coir::Error> talk(const coir::Address& to) {
  auto connection = coir::TcpStream::connect(to, coir::Deadline::after(5s));
  if (!connection) return std::unexpected(connection.error());
  auto socket = WebSocket::connect(std::move(*connection), {.host = "localhost", .target = "/echo"});
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

int main() {
  return coir::run([] {
    auto server = Server::create({.handler = echo});
    auto listener = coir::TcpListener::listen(*coir::Address::parse("127.0.0.1:0"));
    if (!server || !listener) return 1;
    const coir::Address address = listener->local_address();
    if (!server->add(std::move(*listener)) || !server->start()) return 1;
    const auto talked = talk(address);
    if (!talked)
      coir::on_worker_stack([&] { fprintf(stderr, "websocket_echo: %s\n", coir::describe(talked.error())); });
    return server->stop(coir::Deadline::after(5s)) && talked ? 0 : 1;
  });
}
