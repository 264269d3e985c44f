#pragma once

#include <coir/error.h>
#include <coir/http/wire/request.h>
#include <coir/http/wire/response.h>

#include <cstdint>
#include <expected>
#include <span>
#include <string_view>

// The handshake that turns an HTTP connection into a WebSocket (RFC 6455, 4), from both sides. No input or output.
// Which pages may open one is http/message/origin.h's to say.
namespace coir::http {

// Handshake is what a server answers a request with: 101, or the status of a refusal. Its views point into the request
// and into the server's own list.
struct Handshake {
  std::uint16_t status = 400;
  std::string_view key;          // of the client
  std::string_view subprotocol;  // that both speak; empty: none
};

// read_handshake judges a request for a WebSocket, in this order: 405 for another method than GET; 400 for HTTP/1.0;
// 426 where the client does not ask for the upgrade; 400 where Connection does not name Upgrade, for a request with
// content, and for a version that is missing or there twice; 426 for another version than 13; 400 for a key that is
// missing, there twice or not 16 bytes, and for a list of subprotocols that is none. The first of the client's subprotocols
// that is in `spoken` is chosen. Extensions are not agreed on, whatever the client offers.
Handshake read_handshake(const Request& request, std::span<const std::string_view> spoken) noexcept;

// refusal_fields are the lines that go with a refusal: the method or the version that would have been taken.
std::string_view refusal_fields(std::uint16_t status) noexcept;

// write_handshake_fields writes the fields of the answer that accepts: Upgrade, Connection, the key's answer and the
// subprotocol.
void write_handshake_fields(ResponseHead& head, const Handshake& handshake) noexcept;

// write_handshake_fields writes the client's lines into `lines`, beside which its request has Host and whatever else it
// wants. `key` is of websocket_key. A subprotocol that is no token spoils the lines.
void write_handshake_fields(ResponseHead& lines, std::string_view key,
                            std::span<const std::string_view> offered) noexcept;

// check_handshake judges a server's answer to the client's `key` and the subprotocols that it offered, and returns the
// one that the server has chosen, empty for none. Errors: protocol (a status other than 101; Upgrade, Connection or
// Sec-WebSocket-Accept missing, there twice or wrong; a subprotocol that was not offered; an extension).
std::expected<std::string_view, Error> check_handshake(int status, std::span<const Header> fields, std::string_view key,
                                                       std::span<const std::string_view> offered) noexcept;

}  // namespace coir::http
