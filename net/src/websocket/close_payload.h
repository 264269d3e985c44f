#pragma once

#include <coir/error.h>
#include <coir/http/websocket.h>

#include <expected>
#include <span>
#include <string_view>

#include "websocket/frame.h"

// The content of a close frame (RFC 6455, 5.5.1): nothing, or a code of two bytes and a reason in UTF-8.
namespace coir::http {

inline constexpr std::size_t kMostCloseReason = kMostControlPayload - 2;

// ClosePayload is what a peer's close frame says, or what is wrong with it: `error` is then the code to close with,
// else `normal`. The reason points into the payload.
struct ClosePayload {
  CloseCode code = CloseCode::no_status;
  CloseCode error = CloseCode::normal;
  std::string_view reason;
};

// read_close reads a close frame's payload. Its error is protocol_error where half a code stands or one that may not be
// sent, invalid_payload where the reason is not UTF-8.
ClosePayload read_close(std::string_view payload) noexcept;

// write_close writes the payload of a close frame into `out` and returns what was written; for `no_status` that is
// nothing, and the reason is left out. Errors: invalid (a code that may not be sent, a reason that is not UTF-8), limit
// (a reason over kMostCloseReason bytes).
std::expected<std::string_view, Error> write_close(CloseCode code, std::string_view reason,
                                                   std::span<char, kMostControlPayload> out) noexcept;

}  // namespace coir::http
