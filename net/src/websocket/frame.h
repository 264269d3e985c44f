#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

// The frames of RFC 6455, 5: headers read and written, payload masked. State only: no input or output, no allocation.
//
//    byte 0   FIN | RSV1 RSV2 RSV3 | opcode (4 bits)
//         1   MASK | length (7 bits); 126: two bytes of length follow, 127: eight
//       ...   the length, the masking key of four bytes if MASK is set, the payload
namespace coir::http {

enum class Opcode : std::uint8_t { continuation = 0, text = 1, binary = 2, close = 8, ping = 9, pong = 10 };

constexpr bool is_control(Opcode opcode) noexcept {
  return (static_cast<std::uint8_t>(opcode) & 8) != 0;
}

// WebSocketRole is this side's. A server takes masked frames and sends unmasked ones, a client the other way round.
enum class WebSocketRole : std::uint8_t { server, client };

// MaskKey is a masking key: its four bytes in memory are those on the wire.
using MaskKey = std::uint32_t;

inline constexpr std::size_t kMostFrameHeader = 14;
inline constexpr std::size_t kMostControlPayload = 125;

// mask_payload masks `bytes` in place, or takes the mask off, and returns the key for the bytes that follow them. A
// payload may so be masked in pieces of any size. Cost: words of eight bytes, at any alignment.
MaskKey mask_payload(std::span<char> bytes, MaskKey key) noexcept;

struct FrameHeader {
  Opcode opcode = Opcode::binary;
  bool fin = true;
  bool masked = false;
  MaskKey key = 0;                  // where masked
  std::uint64_t payload_bytes = 0;  // below 2^63; at most kMostControlPayload in a control frame
};

// write_frame_header writes the header into `out`, the length in its shortest form, and returns what was written.
std::string_view write_frame_header(const FrameHeader& header, std::span<char, kMostFrameHeader> out) noexcept;

enum class FrameState : std::uint8_t { more, complete, bad };

// FrameReader reads one frame after the other from bytes that are cut anywhere: the header by `read_header`, the
// payload by `take_payload` until payload_left() is 0, then `next_frame`. 16 bytes of state.
class FrameReader {
 public:
  // read_header takes the header's bytes off the front of `bytes`. Bad, at the first byte that tells: reserved bits,
  // an opcode that is not assigned, a control frame that is fragmented or longer than 125 bytes, a mask where this role
  // wants none or none where it wants one, a length that is not in its shortest form or over 2^63 - 1. After bad it
  // must not be called again.
  [[nodiscard]] FrameState read_header(std::span<char>& bytes, WebSocketRole role) noexcept;

  // take_payload takes the next `size` bytes of payload off the front of `bytes`, without their mask. `size` is at most
  // payload_left() and bytes.size().
  std::span<char> take_payload(std::span<char>& bytes, std::size_t size) noexcept;

  // next_frame makes ready for the header of the next frame.
  void next_frame() noexcept { *this = FrameReader(); }

  // begun tells whether a byte of the frame's header was read; has_header, whether all were.
  bool begun() const noexcept { return header_bytes_ != 0; }
  bool has_header() const noexcept { return complete_; }

  // The header's fields, once it is complete.
  Opcode opcode() const noexcept { return static_cast<Opcode>(first_ & 0x0f); }
  bool fin() const noexcept { return (first_ & 0x80) != 0; }
  std::uint64_t payload_left() const noexcept { return left_; }

  // control_taken is how much of a control frame's payload was taken.
  std::size_t control_taken() const noexcept { return static_cast<std::size_t>(length_ - left_); }

 private:
  bool header_byte(std::uint8_t byte, WebSocketRole role) noexcept;

  std::uint64_t left_ = 0;   // payload bytes that were not taken yet; while the header is read, their number so far
  MaskKey key_ = 0;          // for the next payload byte
  std::uint8_t first_ = 0;   // byte 0
  std::uint8_t length_ = 0;  // the seven bits of byte 1
  std::uint8_t header_bytes_ = 0;  // read so far
  bool complete_ = false;
};

}  // namespace coir::http
