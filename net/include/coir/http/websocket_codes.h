#pragma once

#include <cstdint>

namespace coir::http {

// CloseCode says why a WebSocket was closed (RFC 6455, 7.4, and IANA's registry). Libraries and frameworks use 3000 to
// 3999, programs 4000 to 4999: CloseCode{4001}.
enum class CloseCode : std::uint16_t {
  normal = 1000,             // its purpose is fulfilled
  going_away = 1001,         // the server stops, or the page was left
  protocol_error = 1002,     // the peer does not keep to the framing
  unsupported_data = 1003,   // a kind of message that is not taken, such as binary where text is wanted
  no_status = 1005,          // never sent: the peer's close frame named no code
  abnormal = 1006,           // never sent: the connection ended without a close frame
  invalid_payload = 1007,    // text that is not UTF-8
  policy_violation = 1008,   // a message that is not wanted, for a reason that has no code of its own
  too_big = 1009,            // a message over the receiver's ceiling
  missing_extension = 1010,  // sent by clients only: the server did not agree on an extension
  internal_error = 1011,     // the server cannot go on
  service_restart = 1012,    // come back after a while
  try_again_later = 1013,    // the server is full
  bad_gateway = 1014,        // the server behind the server failed
  tls_failure = 1015,        // never sent: the TLS handshake failed
};

// may_be_sent tells whether a close frame may hold `code`. A code that was received and may not is a protocol error.
constexpr bool may_be_sent(CloseCode code) noexcept {
  const auto number = static_cast<std::uint16_t>(code);
  return (number >= 1000 && number <= 1003) || (number >= 1007 && number <= 1014) || (number >= 3000 && number <= 4999);
}

}  // namespace coir::http
