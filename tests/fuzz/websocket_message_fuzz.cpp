// A WebSocket's peer says anything, to a server or a client. However it is cut the same is heard, nothing of it is over
// a limit, and each message that is heard is heard again when it is sent in frames of our own.

#include <coir/utf8.h>

#include <algorithm>

#include "require.h"
#include "websocket/message_decoder.h"

using namespace coir::http;
using Kind = MessageEvent::Kind;

namespace {

// Heard is all that a decoder told: a byte for what an event is, and each byte of a message behind a 'd', so that
// pieces join without a trace.
class Heard {
 public:
  Heard(std::size_t size, const MessageLimits& limits)
      : told_(static_cast<char*>(malloc(4 * size + 256))), limits_(limits) {}
  ~Heard() {
    free(told_);
    free(message_);
  }
  Heard(const Heard&) = delete;
  Heard& operator=(const Heard&) = delete;

  void event(const MessageEvent& event, const MessageDecoder& decoder) {
    require(event.kind == Kind::none || !ended_);
    switch (event.kind) {
      case Kind::none:
        require(event.bytes.empty());
        return;
      case Kind::data:
        require(event.begins == (message_ == nullptr));
        require(event.begins || event.text == text_);
        data(event);
        require(!event.ends || decoder.between_messages());
        return;
      case Kind::ping:
      case Kind::pong:
        require(event.bytes.size() <= kMostControlPayload && decoder.between_frames());
        put(event.kind == Kind::ping ? 'i' : 'o');
        break;
      case Kind::close:
        require(event.code == CloseCode::no_status ? event.bytes.empty() : may_be_sent(event.code));
        require(coir::is_utf8(event.bytes) && decoder.ended());
        put('c');
        code(event.code);
        break;
      case Kind::failed:
        require(event.bytes.empty() && decoder.ended());
        put('f');
        code(event.code);
        break;
    }
    ended_ = event.kind == Kind::close || event.kind == Kind::failed;
    for (const char c : event.bytes) put(c);
    put('.');
  }
  std::string_view told() const { return {told_, size_}; }

 private:
  void data(const MessageEvent& event) {
    if (event.begins) put(event.text ? 't' : 'b');
    text_ = event.text;
    for (const char c : event.bytes) {
      put('d');
      put(c);
    }
    message_ = static_cast<char*>(realloc(message_, message_size_ + event.bytes.size() + 1));
    if (!event.bytes.empty()) memcpy(message_ + message_size_, event.bytes.data(), event.bytes.size());
    message_size_ += event.bytes.size();
    require(message_size_ <= limits_.max_message);
    if (!event.ends) return;
    put('e');
    require(!event.text || coir::is_utf8({message_, message_size_}));
    send_again();
    free(message_);
    message_ = nullptr;
    message_size_ = 0;
  }

  // send_again has a message go to a server in two frames.
  void send_again() const {
    const std::size_t cut = message_size_ / 3;
    MessageDecoder decoder(WebSocketRole::server);
    MessageDecoder::ControlPayload control;
    std::size_t heard = 0;
    for (const bool fin : {false, true}) {
      const std::string_view part(message_ + (fin ? cut : 0), fin ? message_size_ - cut : cut);
      const MaskKey key = 0x1f2e3d4c;
      char header[kMostFrameHeader];
      const Opcode first = text_ ? Opcode::text : Opcode::binary;
      const std::string_view written = write_frame_header({.opcode = fin ? Opcode::continuation : first,
                                                           .fin = fin,
                                                           .masked = true,
                                                           .key = key,
                                                           .payload_bytes = part.size()},
                                                          header);
      std::span<char> bytes(header, written.size());
      const Exact payload(part);
      mask_payload({payload.data(), payload.size()}, key);
      const MessageEvent no_payload = decoder.next(bytes, control, {});
      require(no_payload.kind == (part.empty() && fin ? Kind::data : Kind::none));
      bytes = {payload.data(), payload.size()};
      if (part.empty()) continue;
      const MessageEvent event = decoder.next(bytes, control, {});
      require(event.kind == Kind::data && event.text == text_ && event.bytes == part && event.ends == fin);
      heard += event.bytes.size();
    }
    require(heard == message_size_ && decoder.between_messages());
  }

  void code(CloseCode code) {
    put(static_cast<char>(static_cast<unsigned>(code) >> 8));
    put(static_cast<char>(static_cast<unsigned>(code) & 0xff));
  }
  void put(char c) { told_[size_++] = c; }

  char* told_;
  std::size_t size_ = 0;
  const MessageLimits& limits_;
  char* message_ = nullptr;
  std::size_t message_size_ = 0;
  bool text_ = false;
  bool ended_ = false;
};

void hear(std::string_view input, std::size_t step, WebSocketRole role, const MessageLimits& limits, Heard& heard) {
  MessageDecoder decoder(role);
  MessageDecoder::ControlPayload control;
  for (std::size_t at = 0; at < input.size(); at += step) {
    const Exact piece(std::string_view(input.data() + at, std::min(step, input.size() - at)));
    std::span<char> bytes(piece.data(), piece.size());
    for (;;) {
      const MessageEvent event = decoder.next(bytes, control, limits);
      heard.event(event, decoder);
      if (event.kind == Kind::none) break;
    }
    require(bytes.empty());
    // A decoder that holds nothing in `control` reads nothing from it.
    if (!decoder.holds_control()) control.fill('?');
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  Source source(data, size);
  const unsigned steering = source.byte();
  const WebSocketRole role = (steering & 1) != 0 ? WebSocketRole::client : WebSocketRole::server;
  const std::size_t step = 1 + (steering >> 1);
  const MessageLimits limits = {
      .max_message = 16 * source.byte(), .max_frame = 16 * source.byte(), .max_fragments = source.byte()};
  const std::string_view input = source.rest();

  Heard at_once(input.size(), limits);
  hear(input, input.size() + 1, role, limits, at_once);
  Heard slow(input.size(), limits);
  hear(input, step, role, limits, slow);
  require(slow.told() == at_once.told());
  Heard bytewise(input.size(), limits);
  hear(input, 1, role, limits, bytewise);
  require(bytewise.told() == at_once.told());
  return 0;
}
