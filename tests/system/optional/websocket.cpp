#include <coir/http/websocket.h>

using namespace coir::http;

extern "C" void use_websocket(Exchange& exchange) {
  auto socket = accept_websocket(exchange);
  if (!socket) return;
  while (auto message = socket->receive()) {
    if (!(message->text ? socket->send_text(message->bytes) : socket->send_binary(message->bytes))) return;
  }
}
