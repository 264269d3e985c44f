#pragma once

#include <coir/error.h>
#include <coir/http/exchange.h>

#include <expected>
#include <optional>
#include <span>
#include <string_view>

#include "websocket/handshake.h"

namespace coir::http {

// SocketOpening is the server's side of the opening handshake, within an exchange.
struct SocketOpening {
  // judge returns what the client's request agrees on, or answers the refusal that it deserves: 403 for a page that may
  // not connect, and what read_handshake says.
  static std::optional<Handshake> judge(Exchange& exchange, std::span<const std::string_view> spoken,
                                        std::span<const std::string_view> origins) noexcept;

  // answer writes the head of 101 for a request that judge has found in order; what follows is the socket's.
  // Errors: those of Exchange::begin_chunked.
  static std::expected<void, Error> answer(Exchange& exchange, std::span<const std::string_view> spoken) noexcept;
};

}  // namespace coir::http
