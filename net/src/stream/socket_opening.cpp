#include "stream/socket_opening.h"

#include "http/message/origin.h"
#include "http/session/keeper.h"

namespace coir::http {

std::optional<Handshake> SocketOpening::judge(Exchange& exchange, std::span<const std::string_view> spoken,
                                              std::span<const std::string_view> origins) noexcept {
  const Handshake handshake = read_handshake(exchange.request(), spoken);
  if (handshake.status != 101) {
    exchange.respond_status(handshake.status, refusal_fields(handshake.status));
  } else if (!is_allowed_origin(exchange.request(), exchange.secure(), origins)) {
    exchange.respond_status(403);
  } else {
    return handshake;
  }
  return {};
}

std::expected<void, Error> SocketOpening::answer(Exchange& exchange,
                                                 std::span<const std::string_view> spoken) noexcept {
  write_handshake_fields(exchange.start(101), read_handshake(exchange.request(), spoken));
  return Keeper::open(exchange, Keeper::Opening::upgrade);
}

}  // namespace coir::http
