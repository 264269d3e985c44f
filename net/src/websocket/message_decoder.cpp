#include "websocket/message_decoder.h"

#include <algorithm>
#include <cstring>

#include "websocket/close_payload.h"

namespace coir::http {

MessageEvent MessageDecoder::next(std::span<char>& bytes, ControlPayload& control,
                                  const MessageLimits& limits) noexcept {
  const WebSocketRole role = client_ ? WebSocketRole::client : WebSocketRole::server;
  while (!ended_) {
    if (malformed_) return fail(CloseCode::invalid_payload);
    if (!frame_.has_header()) {
      const FrameState state = frame_.read_header(bytes, role);
      if (state == FrameState::more) return {};
      if (state == FrameState::bad) return fail(CloseCode::protocol_error);
      if (const CloseCode code = begin_frame(limits); code != CloseCode::normal) return fail(code);
    }
    if (bytes.empty() && frame_.payload_left() != 0) return {};
    const MessageEvent event = is_control(frame_.opcode()) ? take_control(bytes, control) : take_data(bytes);
    if (event.kind != MessageEvent::Kind::none) return event;
  }
  bytes = {};
  return {};
}

// begin_frame judges a frame by its header and returns the code that it deserves, `normal` when it is in order.
CloseCode MessageDecoder::begin_frame(const MessageLimits& limits) noexcept {
  const Opcode opcode = frame_.opcode();
  if (is_control(opcode)) return CloseCode::normal;
  if ((opcode == Opcode::continuation) != in_message_) return CloseCode::protocol_error;
  if (!in_message_) {
    in_message_ = true;
    text_ = opcode == Opcode::text;
    told_ = false;
    fragments_ = 0;
    message_bytes_ = 0;
  }
  if (fragments_ >= std::min(limits.max_fragments, kMostFragments)) return CloseCode::policy_violation;
  ++fragments_;
  const std::uint64_t size = frame_.payload_left();
  if (size > limits.max_frame || message_bytes_ > limits.max_message || size > limits.max_message - message_bytes_) {
    return CloseCode::too_big;
  }
  message_bytes_ += size;
  return CloseCode::normal;
}

// take_data hands over what is there of a data frame: nothing where an empty frame does not end its message.
MessageEvent MessageDecoder::take_data(std::span<char>& bytes) noexcept {
  const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(frame_.payload_left(), bytes.size()));
  const std::span<char> payload = frame_.take_payload(bytes, size);
  std::string_view piece(payload.data(), payload.size());
  const bool ends = frame_.payload_left() == 0 && frame_.fin();
  if (frame_.payload_left() == 0) frame_.next_frame();
  if (text_) {
    const std::size_t good = utf8_.accept(piece);
    if (good < piece.size() || (ends && !utf8_.complete())) {
      if (good == 0) return fail(CloseCode::invalid_payload);
      piece = {piece.data(), good};
      malformed_ = true;
    }
  }
  if (piece.empty() && !ends) return {};
  MessageEvent event{.kind = MessageEvent::Kind::data,
                     .text = text_ != 0,
                     .begins = !told_,
                     .ends = ends && !malformed_,
                     .bytes = piece};
  told_ = true;
  if (ends) in_message_ = false;
  return event;
}

// take_control gathers a control frame's payload where it did not arrive whole.
MessageEvent MessageDecoder::take_control(std::span<char>& bytes, ControlPayload& control) noexcept {
  const std::size_t taken = frame_.control_taken();
  const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(frame_.payload_left(), bytes.size()));
  const std::span<char> piece = frame_.take_payload(bytes, size);
  std::string_view payload(piece.data(), piece.size());
  if (taken != 0 || frame_.payload_left() != 0) {
    if (size != 0) std::memcpy(&control[taken], piece.data(), size);
    if (frame_.payload_left() != 0) return {};
    payload = {control.data(), taken + size};
  }
  const Opcode opcode = frame_.opcode();
  frame_.next_frame();
  if (opcode == Opcode::close) return close(payload);
  return {.kind = opcode == Opcode::ping ? MessageEvent::Kind::ping : MessageEvent::Kind::pong, .bytes = payload};
}

MessageEvent MessageDecoder::close(std::string_view payload) noexcept {
  const ClosePayload said = read_close(payload);
  if (said.error != CloseCode::normal) return fail(said.error);
  ended_ = true;
  return {.kind = MessageEvent::Kind::close, .code = said.code, .bytes = said.reason};
}

MessageEvent MessageDecoder::fail(CloseCode code) noexcept {
  ended_ = true;
  return {.kind = MessageEvent::Kind::failed, .code = code};
}

}  // namespace coir::http
