// A server whose WebSockets send back what they are sent, for other people's clients. Prints its port; serves until SIGTERM.
//
//   /             messages whole, of up to 1 MiB
//   /pieces       in pieces, as they come, of up to 16 MiB
//   /close/CODE   closed by this side with that code, behind the first message

#include <coir/http/websocket.h>
#include <coir/http/wire/query.h>

#include "tests/support/serve_printed.h"

using namespace coir;
using namespace coir::http;

namespace {

constexpr std::string_view kSubprotocols[] = {"echo.v2", "echo.v1"};

void echo(WebSocket& socket) {
  while (const auto message = socket.receive()) {
    const auto sent = message->text ? socket.send_text(message->bytes) : socket.send_binary(message->bytes);
    if (!sent) return;
  }
}

void echo_pieces(WebSocket& socket) {
  while (const auto piece = socket.receive_piece()) {
    if (!socket.send_piece(*piece)) return;
  }
}

void serve(Exchange& exchange) {
  constexpr std::string_view kClose = "/close/";
  const std::string_view path = exchange.request().path;
  const bool pieces = path == "/pieces";
  const auto code = path.starts_with(kClose) ? parse_integer(path.substr(kClose.size())) : std::nullopt;
  WebSocketOffer offer = {.subprotocols = kSubprotocols};
  if (pieces) offer.options.max_message = offer.options.max_frame = 16 * 1024 * 1024;
  auto socket = accept_websocket(exchange, offer);
  if (!socket) return;
  if (code) {
    if (socket->receive()) static_cast<void>(socket->close(static_cast<CloseCode>(*code), "as you asked"));
  } else if (pieces) {
    echo_pieces(*socket);
  } else {
    echo(*socket);
  }
}

}  // namespace

int main() {
  return test::serve_printed(serve);
}
