#pragma once

#include <coir/http/websocket.h>
#include <coir/net/stream.h>
#include <string.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "net/src/websocket/close_payload.h"
#include "net/src/websocket/frame.h"
#include "net/src/websocket/websocket_state.h"
#include "tests/support/tls_pair.h"

namespace coir::test {

using http::Opcode;
using http::WebSocketRole;

// HeardFrame is a frame that a raw peer has read. It keeps the first bytes of a large frame.
struct HeardFrame {
  Opcode opcode = Opcode::continuation;
  bool fin = false;
  bool masked = false;
  std::size_t size = 0;
  char bytes[512];
  // gone: the connection has ended instead.
  bool gone = false;

  std::string_view payload() const { return {bytes, size < sizeof bytes ? size : sizeof bytes}; }
  bool is(Opcode wanted, std::string_view text) const { return !gone && opcode == wanted && fin && payload() == text; }
  // closes tells whether it is a close frame with that code.
  bool closes(http::CloseCode code) const {
    return !gone && opcode == Opcode::close && http::read_close(payload()).code == code;
  }
};

// RawPeer speaks frames over a connection, well or badly, as the test says.
class RawPeer {
 public:
  explicit RawPeer(Stream&& stream, WebSocketRole role = WebSocketRole::client)
      : stream_(std::move(stream)), masks_(role == WebSocketRole::client) {}

  bool raw(std::string_view bytes) { return stream_.write(bytes, patience()).has_value(); }

  // say sends a frame; `masks` is what its role wants.
  bool say(Opcode opcode, std::string_view payload, bool fin = true) { return say(opcode, payload, fin, masks_); }
  bool say(Opcode opcode, std::string_view payload, bool fin, bool masks) {
    char out[http::kMostFrameHeader];
    http::FrameHeader header{
        .opcode = opcode, .fin = fin, .masked = masks, .key = 0x11223344, .payload_bytes = payload.size()};
    if (!raw(http::write_frame_header(header, out))) return false;
    http::MaskKey key = header.key;
    char piece[4096];
    while (!payload.empty()) {
      const std::size_t size = payload.size() < sizeof piece ? payload.size() : sizeof piece;
      memcpy(piece, payload.data(), size);
      if (masks) key = http::mask_payload({piece, size}, key);
      if (!raw({piece, size})) return false;
      payload.remove_prefix(size);
    }
    return true;
  }
  bool close(http::CloseCode code, std::string_view reason = {}) {
    char payload[http::kMostControlPayload];
    return say(Opcode::close, *http::write_close(code, reason, payload));
  }

  // hear reads the next frame.
  HeardFrame hear() {
    HeardFrame heard;
    http::FrameReader reader;
    char bytes[512];
    const auto role = masks_ ? WebSocketRole::client : WebSocketRole::server;
    while (!reader.has_header()) {
      std::span<char> byte(bytes, 1);
      if (!stream_.read(byte, patience())) {
        heard.gone = true;
        return heard;
      }
      if (reader.read_header(byte, role) == http::FrameState::bad) __builtin_trap();
    }
    heard.opcode = reader.opcode();
    heard.fin = reader.fin();
    heard.masked = !masks_;
    while (reader.payload_left() != 0) {
      const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(reader.payload_left(), sizeof bytes));
      const auto got = stream_.read({bytes, wanted}, patience());
      if (!got) {
        heard.gone = true;
        return heard;
      }
      std::span<char> arrived(bytes, *got);
      const auto piece = reader.take_payload(arrived, *got);
      if (heard.size < sizeof heard.bytes) {
        const std::size_t room = sizeof heard.bytes - heard.size;
        memcpy(heard.bytes + heard.size, piece.data(), piece.size() < room ? piece.size() : room);
      }
      heard.size += piece.size();
    }
    return heard;
  }

  // ended tells whether the connection ends without another byte.
  bool ended() {
    char byte[1];
    return !stream_.read(byte, patience());
  }

  Stream& stream() { return stream_; }

 private:
  Stream stream_;
  bool masks_;
};

// Talk is a WebSocket of one role and a raw peer of the other.
struct Talk {
  explicit Talk(const http::WebSocketOptions& options = {}, WebSocketRole role = WebSocketRole::server)
      : Talk(SocketPair(), options, role) {}
  Talk(SocketPair&& pair, const http::WebSocketOptions& options, WebSocketRole role)
      : socket(*http::WebSocketAccess::make(std::move(pair.server), role, options, {}, {})),
        peer(std::move(pair.client), role == WebSocketRole::server ? WebSocketRole::client : WebSocketRole::server) {}

  http::WebSocket socket;
  RawPeer peer;
};

}  // namespace coir::test
