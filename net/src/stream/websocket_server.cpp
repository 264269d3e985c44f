#include <coir/http/detail/detached.h>
#include <coir/http/websocket.h>

#include <utility>

#include "base/buffer_pool.h"
#include "http/session/engine.h"
#include "stream/socket_opening.h"
#include "websocket/websocket_state.h"

namespace coir::http {

std::expected<WebSocket, Error> accept_websocket(Exchange& exchange, const WebSocketOffer& offer) noexcept {
  const auto agreed = SocketOpening::judge(exchange, offer.subprotocols, offer.origins);
  if (!agreed) return std::unexpected(Error{ErrorCode::invalid});
  // A view of the server's list, which stays.
  const std::string_view subprotocol = agreed->subprotocol;
  if (auto answered = SocketOpening::answer(exchange, offer.subprotocols); !answered) {
    return std::unexpected(answered.error());
  }
  // The session's memory goes with it.
  const std::string_view sent = Detached::sent(exchange);
  Buffer arrived;
  if (!sent.empty()) {
    auto taken = Buffer::take(sent.size());
    if (!taken) {
      exchange.close_after();
      return std::unexpected(taken.error());
    }
    arrived = std::move(*taken);
    sent.copy(arrived.data(), sent.size());
  }
  const std::size_t arrived_bytes = sent.size();
  auto detached = Detached::from(exchange);
  if (!detached) return std::unexpected(detached.error());
  WebSocket socket = WebSocketAccess::made(std::move(detached->stream()), WebSocketRole::server, offer.options,
                                           subprotocol, std::move(arrived), arrived_bytes);
  WebSocket::State& state = WebSocketAccess::state(socket);
  state.stops = detached->stops();
  Connection& connection = detached->release();
  state.served = &connection;
  state.served_ended = [](void* of, Stream&& stream) noexcept {
    auto& ended = *static_cast<Connection*>(of);
    ended.stream = std::move(stream);
    ended.engine->close(ended);
  };
  return socket;
}

}  // namespace coir::http
