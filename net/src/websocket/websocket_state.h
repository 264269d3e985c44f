#pragma once

#include <coir/atomic.h>
#include <coir/config.h>
#include <coir/http/websocket.h>
#include <coir/spinlock.h>
#include <sys/uio.h>

#include "base/buffer_pool.h"
#include "base/turn.h"
#include "websocket/frame.h"
#include "websocket/message_decoder.h"

#if !COIR_NO_ASYNC
#include <coir/cancellation.h>
#endif

namespace coir::http {

// WebSocket::State is a WebSocket. receive.cpp has what reads, send.cpp what writes,
// opening.cpp the client's handshake, websocket.cpp the rest. The reader's
// members are touched by the fiber that receives alone, the writers' by whoever has the turn.
struct WebSocket::State {
  State(Stream&& stream_given, WebSocketRole role_given, const WebSocketOptions& given) noexcept
      : stream(std::move(stream_given)), options(given), decoder(role_given), role(role_given) {}
  // No call on `other` may be in progress.
  State(State&& other) noexcept;
  ~State();

  // receive.cpp
  std::expected<WebSocketMessage, Error> receive(Deadline deadline) noexcept;
  std::expected<MessageEvent, Error> next_piece(Deadline deadline) noexcept;
  std::expected<void, Error> may_go_on(Deadline deadline, bool has_read) noexcept;
  std::expected<void, Error> fill(Deadline deadline) noexcept;
  std::expected<void, Error> await_input(Deadline deadline) noexcept;
  std::expected<void, Error> await_readable(Deadline deadline) noexcept;
  std::expected<void, Error> append(std::string_view piece) noexcept;
  std::unexpected<Error> end(ErrorCode error) noexcept;
  std::unexpected<Error> met_close(const MessageEvent& event) noexcept;
  std::unexpected<Error> fail(CloseCode code, ErrorCode error) noexcept;
  std::unexpected<Error> lost(Error error) noexcept;
  bool tell_of_stop() noexcept;
  void heard() noexcept;
  void answer_ping(std::string_view payload) noexcept;
  void linger() noexcept;
  MessageLimits limits() const noexcept { return {options.max_message, options.max_frame, options.max_fragments}; }

  // send.cpp
  std::expected<void, Error> send(Opcode opcode, std::string_view bytes, Deadline deadline) noexcept;
  std::expected<void, Error> send_piece(const WebSocketPiece& piece, Deadline deadline) noexcept;
  std::expected<void, Error> send_close(CloseCode code, std::string_view reason, Deadline deadline) noexcept;
  std::expected<void, Error> send_frame(Opcode opcode, bool fin, std::string_view payload, Deadline deadline) noexcept;
  std::expected<void, Error> send_masked(FrameHeader header, std::string_view payload, Deadline deadline) noexcept;
  std::expected<void, Error> write(std::span<iovec> parts, bool& begun, Deadline deadline) noexcept;
  std::expected<void, Error> may_send() const noexcept;
  void send_pongs() noexcept;

  Stream stream;
  WebSocketOptions options;
  std::string_view subprotocol;

  // The reader's.
  MessageDecoder decoder;
  Buffer input;  // what arrived and was not looked at yet lies at begin .. end_at
  std::uint32_t begin = 0, end_at = 0;
  Buffer message;  // the message at hand, as far as it has come
  std::uint32_t message_bytes = 0;
  bool collects = false;      // `message` holds a part of a message that receive has not returned yet
  bool in_pieces = false;     // a message is being received by receive_piece
  bool delivered = false;     // `message` holds what receive has returned
  bool pinged = false;        // a ping was sent since the peer was heard last
  std::int64_t alive_ns = 0;  // when the peer was heard last, or sent that ping
  Deadline message_deadline;
  ErrorCode ended{};  // why nothing more comes
  CloseCode code = CloseCode::no_status;
  std::uint8_t reason_bytes = 0;  // of the peer's reason, which lies in `control`
  MessageDecoder::ControlPayload control;
  Atomic<bool> reading{false};  // a fiber is inside receive; who closes meanwhile leaves the answer to that one

  // The writers'. A pong that finds somebody sending waits here for that one to finish; the newest replaces the others,
  // as RFC 6455, 5.5.3 lets it.
  TurnLock turn;  // to send
  Spinlock pong_lock;
  std::uint8_t pong_bytes = kNoPong;
  char pong[kMostControlPayload];
  bool sends_pieces = false;
  bool sends_text = false;  // in pieces
  Utf8Checker sent_text;
  Atomic<bool> sent_close{false};
  Atomic<std::int64_t> close_ns{0};  // when
  Atomic<bool> broken{false};        // a frame was cut off: nothing more can be sent
  const WebSocketRole role;

  // For a server's socket: the connection, how it is given back when the socket ends, and the event that the server
  // stops.
  void* served = nullptr;
  void (*served_ended)(void* of, Stream&& stream) noexcept = nullptr;
#if !COIR_NO_ASYNC
  CancellationToken stops;
#endif

  static constexpr std::uint8_t kNoPong = 255;
};

// WebSocketAccess is how the handshakes make a WebSocket, and what serves it reaches into it.
class WebSocketAccess {
 public:
  // make makes a socket of a connection whose handshake is over. `arrived` came behind the handshake.
  // Errors: no_memory, limit (`arrived` is over 16 KiB).
  static std::expected<WebSocket, Error> make(Stream&& stream, WebSocketRole role, const WebSocketOptions& options,
                                              std::string_view subprotocol, std::string_view arrived) noexcept;
  // made is the same with a buffer that holds what arrived.
  static WebSocket made(Stream&& stream, WebSocketRole role, const WebSocketOptions& options,
                        std::string_view subprotocol, Buffer&& arrived, std::size_t arrived_bytes) noexcept;
  static WebSocket::State& state(WebSocket& socket) noexcept { return socket.state(); }
};

}  // namespace coir::http
