#include "websocket/sha1.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace coir::http {
namespace {

constexpr std::size_t kBlock = 64;
using State = std::uint32_t[5];

// add_block is one round of the hash, with the message schedule of 80 words in a ring of 16.
void add_block(State& state, const char* block) noexcept {
  std::uint32_t words[16];
  for (std::size_t i = 0; i < 16; ++i) {
    std::uint32_t word = 0;
    for (std::size_t byte = 0; byte < 4; ++byte) word = word << 8 | static_cast<std::uint8_t>(block[4 * i + byte]);
    words[i] = word;
  }
  auto [a, b, c, d, e] = state;
  for (std::size_t i = 0; i < 80; ++i) {
    if (i >= 16) {
      words[i % 16] = std::rotl(words[(i + 13) % 16] ^ words[(i + 8) % 16] ^ words[(i + 2) % 16] ^ words[i % 16], 1);
    }
    const std::uint32_t mixed = i < 20   ? ((b & c) | (~b & d)) + 0x5a827999
                                : i < 40 ? (b ^ c ^ d) + 0x6ed9eba1
                                : i < 60 ? ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc
                                         : (b ^ c ^ d) + 0xca62c1d6;
    const std::uint32_t next = std::rotl(a, 5) + mixed + e + words[i % 16];
    e = d;
    d = c;
    c = std::rotl(b, 30);
    b = a;
    a = next;
  }
  state[0] += a;
  state[1] += b;
  state[2] += c;
  state[3] += d;
  state[4] += e;
}

}  // namespace

std::array<char, 20> sha1(std::string_view bytes) noexcept {
  State state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
  const std::uint64_t bits = std::uint64_t{bytes.size()} * 8;
  for (; bytes.size() >= kBlock; bytes.remove_prefix(kBlock)) add_block(state, bytes.data());

  char last[kBlock] = {};
  if (!bytes.empty()) std::memcpy(last, bytes.data(), bytes.size());
  last[bytes.size()] = static_cast<char>(0x80);
  if (bytes.size() >= kBlock - sizeof bits) {
    add_block(state, last);
    std::memset(last, 0, sizeof last);
  }
  for (std::size_t i = 0; i < sizeof bits; ++i) last[kBlock - 1 - i] = static_cast<char>(bits >> 8 * i);
  add_block(state, last);

  std::array<char, 20> digest;
  for (std::size_t i = 0; i < digest.size(); ++i) digest[i] = static_cast<char>(state[i / 4] >> (24 - 8 * (i % 4)));
  return digest;
}

}  // namespace coir::http
