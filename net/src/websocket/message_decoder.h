#pragma once

#include <coir/http/websocket.h>
#include <coir/utf8.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "websocket/frame.h"

namespace coir::http {

// MessageLimits bounds what a peer may send. Nothing of a message is kept here, so a message may be larger than memory
// where the caller can use it in pieces.
struct MessageLimits {
  std::uint64_t max_message = 1024 * 1024;  // all fragments together; over it: 1009
  std::uint64_t max_frame = 1024 * 1024;    // one fragment; over it: 1009
  std::uint32_t max_fragments = 16'384;     // of one message, 2^24 - 1 at most; over it: 1008
};

// MessageEvent is what the next bytes are. Its bytes point into what was given to `next`, or into `control`, and are
// valid until either is used again.
struct MessageEvent {
  enum class Kind : std::uint8_t {
    none,    // nothing more to tell of these bytes
    data,    // a piece of a message
    ping,    // `bytes` is what the pong has to hold
    pong,    // `bytes` is what the ping held
    close,   // the peer closes: `code`, no_status where it names none, and `bytes` is its reason, which is UTF-8
    failed,  // the peer does not keep to the protocol or a limit: `code` is the one to close with
  };
  Kind kind = Kind::none;
  bool text = false;    // of data: else binary
  bool begins = false;  // of data: the first piece of its message
  bool ends = false;    // of data: the last piece
  CloseCode code = CloseCode::no_status;
  std::string_view bytes;
};

// MessageDecoder makes messages of the bytes that a WebSocket's peer sends (RFC 6455, 5 to 7), in place and in whatever
// pieces they arrive.
//
//   MessageDecoder decoder(WebSocketRole::server);
//   for (;;) {
//     read into a buffer; std::span<char> bytes = what was read ...
//     for (;;) {
//       MessageEvent event = decoder.next(bytes, control, limits);
//       if (event.kind == MessageEvent::Kind::none) break;
//       use it ...
//     }
//   }
//
// Messages come in pieces: a piece ends where the bytes or a fragment end, and an empty message is one empty piece. The
// text of a piece is well-formed as far as it goes, but may end inside a character; the last piece does not. Text that
// is malformed is handed over up to the byte that cannot stand there, without `ends`, before `failed` tells. A ping,
// pong or close frame comes whole, also between the fragments of a message.
//
// How the bytes are cut changes nothing but where pieces end. 32 bytes of state, a value; no allocation.
class MessageDecoder {
 public:
  // ControlPayload is the place for the payload of a control frame that did not arrive in one piece.
  using ControlPayload = std::array<char, kMostControlPayload>;

  explicit MessageDecoder(WebSocketRole role) noexcept : client_(role == WebSocketRole::client) {}

  // next takes bytes off the front of `bytes` and returns the first thing that they tell; with `none` all were taken.
  // Bytes are changed where they were masked. `control` is kept by the caller while holds_control() is true. After
  // `close` or `failed` what comes is dropped.
  [[nodiscard]] MessageEvent next(std::span<char>& bytes, ControlPayload& control,
                                  const MessageLimits& limits) noexcept;

  // between_frames tells whether the next byte begins a frame; between_messages, whether no message is unfinished
  // either.
  bool between_frames() const noexcept { return !frame_.begun() && !malformed_; }
  bool between_messages() const noexcept { return between_frames() && !in_message_; }

  // holds_control tells whether `control` holds a part of a payload.
  bool holds_control() const noexcept {
    return frame_.has_header() && is_control(frame_.opcode()) && frame_.control_taken() != 0;
  }

  // ended tells whether `close` or `failed` was returned.
  bool ended() const noexcept { return ended_; }

 private:
  static constexpr std::uint32_t kMostFragments = (1u << 24) - 1;

  CloseCode begin_frame(const MessageLimits& limits) noexcept;
  MessageEvent take_control(std::span<char>& bytes, ControlPayload& control) noexcept;
  MessageEvent take_data(std::span<char>& bytes) noexcept;
  MessageEvent close(std::string_view payload) noexcept;
  MessageEvent fail(CloseCode code) noexcept;

  FrameReader frame_;
  std::uint64_t message_bytes_ = 0;  // of the message at hand, the announced rest of the frame included
  Utf8Checker utf8_;                 // of a text message; between two of them no character is unfinished
  std::uint32_t fragments_ : 24 = 0;
  std::uint32_t client_ : 1;
  std::uint32_t in_message_ : 1 = 0;  // its first frame has begun, its last one has not ended
  std::uint32_t text_ : 1 = 0;
  std::uint32_t told_ : 1 = 0;       // a piece of the message was handed over
  std::uint32_t malformed_ : 1 = 0;  // `failed` is next, with invalid_payload
  std::uint32_t ended_ : 1 = 0;
};

static_assert(sizeof(MessageDecoder) == 32);

}  // namespace coir::http
