#include "websocket/close_payload.h"

#include <coir/utf8.h>

#include <cstdint>
#include <cstring>

namespace coir::http {

ClosePayload read_close(std::string_view payload) noexcept {
  ClosePayload close;
  if (payload.empty()) return close;
  if (payload.size() == 1) {
    close.error = CloseCode::protocol_error;
    return close;
  }
  const unsigned high = static_cast<std::uint8_t>(payload[0]);
  const unsigned low = static_cast<std::uint8_t>(payload[1]);
  close.code = static_cast<CloseCode>(high << 8 | low);
  close.reason = {payload.data() + 2, payload.size() - 2};
  if (!may_be_sent(close.code)) {
    close.error = CloseCode::protocol_error;
  } else if (!is_utf8(close.reason)) {
    close.error = CloseCode::invalid_payload;
  }
  return close;
}

std::expected<std::string_view, Error> write_close(CloseCode code, std::string_view reason,
                                                   std::span<char, kMostControlPayload> out) noexcept {
  if (code == CloseCode::no_status) return std::string_view(out.data(), 0);
  if (!may_be_sent(code) || !is_utf8(reason)) return std::unexpected(ErrorCode::invalid);
  if (reason.size() > kMostCloseReason) return std::unexpected(ErrorCode::limit);
  const auto number = static_cast<std::uint16_t>(code);
  out[0] = static_cast<char>(number >> 8);
  out[1] = static_cast<char>(number & 0xff);
  if (!reason.empty()) std::memcpy(&out[2], reason.data(), reason.size());
  return std::string_view(out.data(), 2 + reason.size());
}

}  // namespace coir::http
