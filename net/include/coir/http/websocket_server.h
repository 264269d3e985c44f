#pragma once

#include <coir/port/needs_fibers.h>

#include <coir/http/exchange.h>
#include <coir/http/websocket.h>

#include <expected>
#include <span>
#include <string_view>

namespace coir::http {

// WebSocketOffer is what a server offers to those who ask for a WebSocket. Everything it refers to must outlive the socket.
struct WebSocketOffer {
  // The subprotocols that the program speaks; of a client's list the first that is among them is agreed on.
  std::span<const std::string_view> subprotocols = {};
  // The pages that may connect besides those of the server's own origin, as a browser writes their origins
  // ("https://panel.example"), or "*" for all. A client that is no browser names none and may connect.
  std::span<const std::string_view> origins = {};
  WebSocketOptions options = {};
};

// accept_websocket answers a request for a WebSocket, and the handler goes on with it:
//
//   void echo(Exchange& exchange) {
//     auto socket = accept_websocket(exchange);
//     if (!socket) return;                                  // it has been answered
//     while (auto message = socket->receive()) {
//       if (!socket->send_text(message->bytes)) return;
//     }
//   }
//
// The exchange is over then: nothing of it may be used behind the call, its request neither. The connection serves no
// other request, and its session serves others: while the handler waits for a message it costs its stack and the
// connection's record. When the server stops, receive tells the client 1001 and ends as if the client had closed; a
// handler that does not receive is waited for.
//
// Permessage-deflate is not agreed on. On a fiber.
// Errors: invalid (the request is none for a WebSocket; it has been answered by 400, 403, 405 or 426, or its answer has
// been begun before), limit (the head of the answer is too long), closed (the client is gone), no_memory (for what the
// client has sent already; it has been closed).
[[nodiscard]] std::expected<WebSocket, Error> accept_websocket(Exchange& exchange,
                                                               const WebSocketOffer& offer = {}) noexcept;

}  // namespace coir::http
