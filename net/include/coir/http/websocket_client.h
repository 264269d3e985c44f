#pragma once

#include <coir/config.h>

#if !COIR_STREAMS
#error "this build of coir has no WebSockets: configure it with -DCOIR_STREAMS=ON"
#endif

#include <coir/deadline.h>
#include <coir/error.h>
#include <coir/http/client.h>
#include <coir/http/websocket.h>

#include <expected>
#include <span>
#include <string_view>

namespace coir::http {

// WebSocketWish is what a client asks for beside the address.
struct WebSocketWish {
  std::span<const std::string_view> subprotocols = {};
  std::string_view fields = {};  // further header lines, each ended by CRLF, trusted: "Authorization: Bearer 1\r\n"
  WebSocketOptions options = {};
};

// connect_websocket opens a WebSocket to an address of ws or wss, by `client`: with its trust, its pinned keys, the times
// of its phases, and through its proxy, which is asked for a tunnel (CONNECT) by ws too. User information of the address
// ("wss://user:password@board.example/") becomes the Authorization line, unless wish.fields have such a line.
//
//   auto client = Client::create();
//   auto socket = connect_websocket(*client, "wss://board.example/live", {}, Deadline::after(5s));
//   while (auto message = socket->receive()) show(message->bytes);
//
// The socket's connection is its own: it counts neither against ClientOptions::max_connections nor in the pool, and may
// outlive the client. Called the same way from a fiber, a thread and in a build without fibers. Redirects are not
// followed. Errors: invalid (the address), unsupported (another scheme than ws and wss; wss in a build without TLS),
// limit; those of Client's requests but of the response, and those of WebSocket::connect.
[[nodiscard]] std::expected<WebSocket, Error> connect_websocket(Client& client, std::string_view url,
                                                                const WebSocketWish& wish = {},
                                                                Deadline deadline = Deadline::never()) noexcept;

}  // namespace coir::http
