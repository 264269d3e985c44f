#include <coir/http/websocket.h>
#include <string.h>

#include <new>

#include "socket/linger.h"
#include "websocket/websocket_state.h"

namespace coir::http {

static_assert(sizeof(WebSocket::State) <= sizeof(WebSocket) && alignof(WebSocket::State) <= alignof(WebSocket));

WebSocket::State::State(State&& other) noexcept
    : stream(std::move(other.stream)),
      options(other.options),
      subprotocol(other.subprotocol),
      decoder(other.decoder),
      input(std::move(other.input)),
      begin(other.begin),
      end_at(other.end_at),
      message(std::move(other.message)),
      message_bytes(other.message_bytes),
      collects(other.collects),
      in_pieces(other.in_pieces),
      delivered(other.delivered),
      pinged(other.pinged),
      alive_ns(other.alive_ns),
      message_deadline(other.message_deadline),
      ended(other.ended),
      code(other.code),
      reason_bytes(other.reason_bytes),
      control(other.control),
      pong_bytes(other.pong_bytes),
      sends_pieces(other.sends_pieces),
      sends_text(other.sends_text),
      sent_text(other.sent_text),
      sent_close(other.sent_close.load(std::memory_order_relaxed)),
      close_ns(other.close_ns.load(std::memory_order_relaxed)),
      broken(other.broken.load(std::memory_order_relaxed)),
      role(other.role),
      served(std::exchange(other.served, nullptr)),
      served_ended(other.served_ended) {
#if !COIR_NO_ASYNC
  stops = other.stops;
#endif
  memcpy(pong, other.pong, sizeof pong);
}

std::expected<WebSocket, Error> WebSocketAccess::make(Stream&& stream, WebSocketRole role,
                                                      const WebSocketOptions& options, std::string_view subprotocol,
                                                      std::string_view arrived) noexcept {
  Buffer input;
  if (!arrived.empty()) {
    auto taken = Buffer::take(arrived.size());
    if (!taken) return std::unexpected(taken.error());
    input = std::move(*taken);
    memcpy(input.data(), arrived.data(), arrived.size());
  }
  return made(std::move(stream), role, options, subprotocol, std::move(input), arrived.size());
}

WebSocket WebSocketAccess::made(Stream&& stream, WebSocketRole role, const WebSocketOptions& options,
                                std::string_view subprotocol, Buffer&& arrived, std::size_t arrived_bytes) noexcept {
  WebSocket socket(std::move(stream), role, options);
  WebSocket::State& state = socket.state();
  state.subprotocol = subprotocol;
  state.input = std::move(arrived);
  state.end_at = static_cast<std::uint32_t>(arrived_bytes);
  state.heard();
  return socket;
}

WebSocket::State::~State() {
  if (served != nullptr) served_ended(served, std::move(stream));
}

WebSocket::WebSocket(Stream&& stream, WebSocketRole role, const WebSocketOptions& options) noexcept {
  ::new (memory_) State(std::move(stream), role, options);
}

WebSocket::WebSocket(WebSocket&& other) noexcept {
  ::new (memory_) State(std::move(other.state()));
}

WebSocket::~WebSocket() {
  state().~State();
}

namespace {

// Reading is the reader's for the length of a call.
class Reading {
 public:
  explicit Reading(Atomic<bool>& mark) noexcept : mark_(mark), mine_(!mark.exchange(true, std::memory_order_acquire)) {}
  ~Reading() {
    // release pairs with the acquire of the next reader.
    if (mine_) mark_.store(false, std::memory_order_release);
  }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;
  explicit operator bool() const noexcept { return mine_; }

 private:
  Atomic<bool>& mark_;
  const bool mine_;
};

std::unexpected<Error> fails_with(ErrorCode code) noexcept {
  return std::unexpected(Error{code});
}

}  // namespace

std::expected<WebSocketMessage, Error> WebSocket::receive(Deadline deadline) noexcept {
  const Reading mine(state().reading);
  if (!mine) return fails_with(ErrorCode::busy);
  return state().receive(deadline);
}

std::expected<WebSocketPiece, Error> WebSocket::receive_piece(Deadline deadline) noexcept {
  State& self = state();
  const Reading mine(self.reading);
  if (!mine) return fails_with(ErrorCode::busy);
  if (self.collects) return fails_with(ErrorCode::invalid);
  const auto piece = self.next_piece(deadline);
  if (!piece) return std::unexpected(piece.error());
  self.in_pieces = !piece->ends;
  return WebSocketPiece{piece->text, piece->begins, piece->ends, piece->bytes};
}

std::expected<void, Error> WebSocket::send_text(std::string_view text, Deadline deadline) noexcept {
  if (!is_utf8(text)) return fails_with(ErrorCode::invalid);
  return state().send(Opcode::text, text, deadline);
}

std::expected<void, Error> WebSocket::send_binary(std::string_view bytes, Deadline deadline) noexcept {
  return state().send(Opcode::binary, bytes, deadline);
}

std::expected<void, Error> WebSocket::send_piece(const WebSocketPiece& piece, Deadline deadline) noexcept {
  return state().send_piece(piece, deadline);
}

std::expected<void, Error> WebSocket::ping(std::string_view payload, Deadline deadline) noexcept {
  if (payload.size() > kMostControlPayload) return fails_with(ErrorCode::limit);
  return state().send(Opcode::ping, payload, deadline);
}

std::expected<void, Error> WebSocket::close(CloseCode code, std::string_view reason) noexcept {
  State& self = state();
  const Deadline deadline = Deadline::after(self.options.close_timeout);
  if (auto sent = self.send_close(code, reason, deadline); !sent) return sent;
  self.send_pongs();
  const Reading mine(self.reading);
  if (!mine) return {};
  for (std::size_t dropped = 0; dropped <= Linger::kMostBytes;) {
    const auto piece = self.next_piece(deadline);
    if (!piece && piece.error() == ErrorCode::end_of_stream) return {};
    if (!piece) return std::unexpected(piece.error());
    dropped += piece->bytes.size();
  }
  return self.end(ErrorCode::truncated);
}

CloseCode WebSocket::close_code() const noexcept {
  return state().code;
}

std::string_view WebSocket::close_reason() const noexcept {
  return {state().control.data(), state().reason_bytes};
}

std::string_view WebSocket::subprotocol() const noexcept {
  return state().subprotocol;
}

Stream& WebSocket::stream() noexcept {
  return state().stream;
}

}  // namespace coir::http
