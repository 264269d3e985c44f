// The writing side of a WebSocket: one whole frame after the other, by the caller that has the turn.
#include <coir/utf8.h>
#include <string.h>
#include <sys/socket.h>

#include <algorithm>

#include "base/randomness.h"
#include "socket/slow_peer.h"
#include "socket/write_all.h"
#include "websocket/close_payload.h"
#include "websocket/websocket_state.h"

namespace coir::http {

std::expected<void, Error> WebSocket::State::may_send() const noexcept {
  const bool closed = sent_close.load(std::memory_order_acquire) || broken.load(std::memory_order_acquire);
  return closed ? std::expected<void, Error>(std::unexpected(Error{ErrorCode::closed})) : std::expected<void, Error>();
}

std::expected<void, Error> WebSocket::State::send(Opcode opcode, std::string_view bytes, Deadline deadline) noexcept {
  auto sent = [&]() -> std::expected<void, Error> {
    auto held = turn.lock(deadline);
    if (!held) return std::unexpected(held.error());
    if (auto may = may_send(); !may) return may;
    if (sends_pieces && !is_control(opcode)) return std::unexpected(Error{ErrorCode::busy});
    return send_frame(opcode, true, bytes, deadline);
  }();
  send_pongs();
  return sent;
}

std::expected<void, Error> WebSocket::State::send_piece(const WebSocketPiece& piece, Deadline deadline) noexcept {
  auto sent = [&]() -> std::expected<void, Error> {
    auto held = turn.lock(deadline);
    if (!held) return std::unexpected(held.error());
    if (auto may = may_send(); !may) return may;
    if (piece.begins == sends_pieces) return std::unexpected(Error{ErrorCode::invalid});
    Utf8Checker text = piece.begins ? Utf8Checker() : sent_text;
    const bool is_text = piece.begins ? piece.text : sends_text;
    if (is_text && (!text.feed(piece.bytes) || (piece.ends && !text.complete()))) {
      return std::unexpected(Error{ErrorCode::invalid});
    }
    const Opcode opcode = !piece.begins ? Opcode::continuation : is_text ? Opcode::text : Opcode::binary;
    if (auto out = send_frame(opcode, piece.ends, piece.bytes, deadline); !out) return out;
    sent_text = text;
    sends_text = is_text;
    sends_pieces = !piece.ends;
    return {};
  }();
  send_pongs();
  return sent;
}

// send_close sends the close frame, if none was sent. Errors: those of send; invalid, limit.
std::expected<void, Error> WebSocket::State::send_close(CloseCode with, std::string_view reason,
                                                        Deadline deadline) noexcept {
  char payload[kMostControlPayload];
  const auto written = write_close(with, reason, payload);
  if (!written) return std::unexpected(written.error());
  auto held = turn.lock(deadline);
  if (!held) return std::unexpected(held.error());
  if (sent_close.load(std::memory_order_relaxed)) return {};
  if (broken.load(std::memory_order_acquire)) return std::unexpected(Error{ErrorCode::closed});
  auto sent = send_frame(Opcode::close, true, *written, deadline);
  // release pairs with the acquires: who sees it does not send.
  close_ns.store(monotonic_ns(), std::memory_order_relaxed);
  if (sent) sent_close.store(true, std::memory_order_release);
  return sent;
}

// send_frame sends a frame. The caller has the turn.
std::expected<void, Error> WebSocket::State::send_frame(Opcode opcode, bool fin, std::string_view payload,
                                                        Deadline deadline) noexcept {
  FrameHeader header{.opcode = opcode, .fin = fin, .payload_bytes = payload.size()};
  if (role == WebSocketRole::client) return send_masked(header, payload, deadline);
  char memory[kMostFrameHeader];
  const std::string_view head = write_frame_header(header, memory);
  iovec parts[] = {{const_cast<char*>(head.data()), head.size()}, {const_cast<char*>(payload.data()), payload.size()}};
  bool begun = false;
  return write(std::span(parts, payload.empty() ? 1 : 2), begun, deadline);
}

// send_masked copies the payload through a buffer, as the caller's bytes stay what they are.
std::expected<void, Error> WebSocket::State::send_masked(FrameHeader header, std::string_view payload,
                                                         Deadline deadline) noexcept {
  auto buffer = Buffer::take(std::min<std::size_t>(payload.size() + kMostFrameHeader, 16'384));
  if (!buffer) return std::unexpected(buffer.error());
  header.masked = true;
  fill_with_randomness({reinterpret_cast<char*>(&header.key), sizeof header.key});
  MaskKey key = header.key;
  std::size_t used =
      write_frame_header(header, std::span<char, kMostFrameHeader>(buffer->data(), kMostFrameHeader)).size();
  bool begun = false;
  do {
    const std::size_t taken = std::min(payload.size(), buffer->size() - used);
    if (taken != 0) memcpy(buffer->data() + used, payload.data(), taken);
    key = mask_payload({buffer->data() + used, taken}, key);
    payload.remove_prefix(taken);
    iovec part = {buffer->data(), used + taken};
    if (auto out = write(std::span(&part, 1), begun, deadline); !out) return out;
    used = 0;
  } while (!payload.empty());
  return {};
}

// write sends all of `parts`. `begun` tells, before and after, whether a part of the frame is out.
std::expected<void, Error> WebSocket::State::write(std::span<iovec> parts, bool& begun, Deadline deadline) noexcept {
  while (!parts.empty()) {
    // A frame that has to go at once has to be whole all the same.
    const Deadline latest = begun && deadline == Deadline::now() ? Deadline::never() : deadline;
    const auto sent = write_some_patiently(stream, parts, options.write_timeout, latest);
    if (!sent) {
      // By TLS a part may have been encrypted already. A connection that has failed is of no use either way.
      const bool waits = sent.error() == ErrorCode::timed_out || sent.error() == ErrorCode::cancelled;
      if (begun || stream.secure() || !waits) {
        broken.store(true, std::memory_order_release);
        // The receiver learns it by the end of the stream.
        ::shutdown(stream.fd(), SHUT_RDWR);
      }
      return std::unexpected(waits || sent.error() == ErrorCode::no_memory ? sent.error() : Error{ErrorCode::closed});
    }
    begun = true;
    take_sent(parts, *sent);
  }
  return {};
}

// send_pongs sends the pong that waits, unless somebody is sending: whoever does calls this afterwards. Either that one
// sees the pong, or its turn is over before the pong was left, and try_lock succeeds here: pong_lock orders the two.
void WebSocket::State::send_pongs() noexcept {
  for (;;) {
    {
      const Locked locked(pong_lock);
      if (pong_bytes == kNoPong) return;
    }
    auto held = turn.try_lock();
    if (!held) return;
    char payload[kMostControlPayload];
    std::uint8_t size;
    {
      const Locked locked(pong_lock);
      size = std::exchange(pong_bytes, kNoPong);
      if (size == kNoPong) return;
      memcpy(payload, pong, size);
    }
    if (!may_send()) return;
    // If the peer takes nothing, the pong is dropped, and reading goes on: both sides may be full. By TLS there is no
    // taking back: the reader waits, at most for the time in which a peer has to take something.
    const Deadline until = stream.secure() ? Deadline::after(options.write_timeout) : Deadline::now();
    static_cast<void>(send_frame(Opcode::pong, true, {payload, size}, until));
  }
}

}  // namespace coir::http
