#pragma once

// One event of a stream, sent or received.
//
//   const ServerEvent event{.data = "21.5", .type = "celsius", .id = "1042"};

#include <cstdint>
#include <optional>
#include <string_view>

namespace coir::http {

// ServerEvent is one event of a stream of type text/event-stream (WHATWG HTML, 9.2), as it is sent and as it is
// received. A default view (data() == nullptr) means absent. It owns nothing.
//
// Data may hold several lines: CR, LF and CRLF end one, and a receiver sees each as LF. It and the type are text in
// UTF-8; whatever is not becomes U+FFFD at the receiver.
struct ServerEvent {
  std::string_view data = {};  // sent without: receivers take the id and the retry, and tell their program nothing
  std::string_view type = {};  // empty or absent: "message"
  // Sent: the id to resume behind; absent: the one before stays; empty: none any more. Received: the one in force.
  std::string_view id = {};
  std::optional<std::uint32_t> retry_ms = {};  // sent: how long receivers wait before they connect anew
};

}  // namespace coir::http
