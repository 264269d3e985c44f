#include "websocket/frame.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace coir::http {
namespace {

constexpr std::uint8_t kFin = 0x80;
constexpr std::uint8_t kReserved = 0x70;
constexpr std::uint8_t kMask = 0x80;
constexpr std::uint8_t kLengthOf2 = 126;
constexpr std::uint8_t kLengthOf8 = 127;

// turned is the key for the bytes that come `by` bytes later.
MaskKey turned(MaskKey key, std::size_t by) noexcept {
  const int bits = static_cast<int>(by % 4 * 8);
  return std::endian::native == std::endian::little ? std::rotr(key, bits) : std::rotl(key, bits);
}

char key_byte(MaskKey key, std::size_t at) noexcept {
  char bytes[sizeof key];
  std::memcpy(bytes, &key, sizeof key);
  return bytes[at % sizeof key];
}

constexpr std::size_t length_bytes(std::uint8_t length) noexcept {
  return length == kLengthOf8 ? 8 : length == kLengthOf2 ? 2 : 0;
}

bool is_assigned(std::uint8_t opcode) noexcept {
  return opcode <= static_cast<std::uint8_t>(Opcode::binary) ||
         (opcode >= static_cast<std::uint8_t>(Opcode::close) && opcode <= static_cast<std::uint8_t>(Opcode::pong));
}

}  // namespace

MaskKey mask_payload(std::span<char> bytes, MaskKey key) noexcept {
  const auto bytewise = [&](std::span<char> few) {
    for (std::size_t at = 0; at < few.size(); ++at) few[at] = static_cast<char>(few[at] ^ key_byte(key, at));
    key = turned(key, few.size());
  };
  constexpr std::size_t word_bytes = sizeof(std::uint64_t);
  // Words begin where they are aligned: some CPUs would load any others byte by byte.
  const std::size_t before = -reinterpret_cast<std::uintptr_t>(bytes.data()) % word_bytes;
  bytewise(bytes.first(std::min(before, bytes.size())));
  bytes = bytes.subspan(std::min(before, bytes.size()));
  const std::uint64_t wide = std::uint64_t{key} << 32 | key;
  for (; bytes.size() >= word_bytes; bytes = bytes.subspan(word_bytes)) {
    char* const place = static_cast<char*>(__builtin_assume_aligned(bytes.data(), word_bytes));
    std::uint64_t word;
    std::memcpy(&word, place, word_bytes);
    word ^= wide;
    std::memcpy(place, &word, word_bytes);
  }
  bytewise(bytes);
  return key;
}

std::string_view write_frame_header(const FrameHeader& header, std::span<char, kMostFrameHeader> out) noexcept {
  const std::uint64_t size = header.payload_bytes;
  const std::uint8_t length = size < kLengthOf2    ? static_cast<std::uint8_t>(size)
                              : size <= UINT16_MAX ? kLengthOf2
                                                   : kLengthOf8;
  out[0] = static_cast<char>(static_cast<std::uint8_t>(header.opcode) | (header.fin ? kFin : 0));
  out[1] = static_cast<char>(length | (header.masked ? kMask : 0));
  std::size_t at = 2;
  for (std::size_t left = length_bytes(length); left > 0; --left) out[at++] = static_cast<char>(size >> 8 * (left - 1));
  if (header.masked) {
    std::memcpy(&out[at], &header.key, sizeof header.key);
    at += sizeof header.key;
  }
  return {out.data(), at};
}

FrameState FrameReader::read_header(std::span<char>& bytes, WebSocketRole role) noexcept {
  while (!complete_) {
    if (bytes.empty()) return FrameState::more;
    // The key comes last. A header that is without one is complete before it.
    if (header_bytes_ >= 2 && header_bytes_ == 2 + length_bytes(length_) && bytes.size() >= sizeof key_) {
      std::memcpy(&key_, bytes.data(), sizeof key_);
      bytes = bytes.subspan(sizeof key_);
      header_bytes_ += sizeof key_;
      complete_ = true;
      break;
    }
    const auto byte = static_cast<std::uint8_t>(bytes.front());
    bytes = bytes.subspan(1);
    if (!header_byte(byte, role)) return FrameState::bad;
  }
  return FrameState::complete;
}

// header_byte takes the next byte of the header. False: no frame begins like this.
bool FrameReader::header_byte(std::uint8_t byte, WebSocketRole role) noexcept {
  const std::size_t at = header_bytes_++;
  if (at == 0) {
    first_ = byte;
    return (byte & kReserved) == 0 && is_assigned(byte & 0x0f) && (fin() || !is_control(opcode()));
  }
  const bool masked = role == WebSocketRole::server;
  if (at == 1) {
    length_ = byte & 0x7f;
    if (((byte & kMask) != 0) != masked || (is_control(opcode()) && length_ > kMostControlPayload)) return false;
    if (length_ < kLengthOf2) left_ = length_;
  } else if (at < 2 + length_bytes(length_)) {
    left_ = left_ << 8 | byte;
    if (at + 1 == 2 + length_bytes(length_)) {
      const std::uint64_t least = length_ == kLengthOf2 ? kLengthOf2 : UINT16_MAX + std::uint64_t{1};
      if (left_ < least || left_ > INT64_MAX) return false;
    }
  } else {
    std::memcpy(reinterpret_cast<char*>(&key_) + (at - 2 - length_bytes(length_)), &byte, 1);
  }
  complete_ = header_bytes_ == 2 + length_bytes(length_) + (masked ? sizeof key_ : 0);
  return true;
}

std::span<char> FrameReader::take_payload(std::span<char>& bytes, std::size_t size) noexcept {
  const std::span<char> payload = bytes.first(size);
  bytes = bytes.subspan(size);
  // A frame without a mask has the key 0.
  if (key_ != 0) key_ = mask_payload(payload, key_);
  left_ -= size;
  return payload;
}

}  // namespace coir::http
