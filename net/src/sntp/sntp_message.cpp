#include "sntp/sntp_message.h"

#include <coir/net/sntp.h>

#include <algorithm>

namespace coir::sntp {
namespace {

// These are the offsets of the fields (RFC 5905, figure 8).
constexpr std::size_t kStratum = 1, kRootDelay = 4, kRootDispersion = 8, kReference = 12, kOrigin = 24, kReceive = 32,
                      kTransmit = 40;
constexpr unsigned kClient = 3, kServer = 4, kVersion = 4, kNotSynchronised = 3;
constexpr std::uint8_t kMostStratum = 15;
// RFC 5905's MAXDISP: a server that may be wrong by 16 s has no time. In units of 1/65536 s.
constexpr std::uint64_t kMostDistance = 16 << 16;

constexpr std::uint64_t kSecondsTo1970 = 2'208'988'800;  // since 1900
constexpr std::uint64_t kFirstSecond = 1'767'225'600;    // 2026-01-01
constexpr std::uint64_t kCentury = 36525ULL * 86400;
constexpr std::uint64_t kBillion = 1'000'000'000;

std::uint64_t number(std::string_view bytes, std::size_t at, std::size_t size) noexcept {
  std::uint64_t value = 0;
  for (std::size_t i = at; i < at + size; ++i) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

}  // namespace

std::int64_t unix_ns(std::uint64_t timestamp) noexcept {
  const std::uint64_t seconds = timestamp >> 32, fraction = timestamp & 0xffff'ffff;
  // Seconds since the first that can be, whichever the era.
  const auto since = static_cast<std::uint32_t>(seconds - (kFirstSecond + kSecondsTo1970));
  if (since >= kCentury) return -1;
  return static_cast<std::int64_t>((kFirstSecond + since) * kBillion + (fraction * kBillion >> 32));
}

void write_request(std::span<char, kMessageBytes> out, std::uint64_t nonce) noexcept {
  std::ranges::fill(out, '\0');
  out[0] = static_cast<char>(kVersion << 3 | kClient);
  for (std::size_t i = 0; i < sizeof nonce; ++i) out[kTransmit + i] = static_cast<char>(nonce >> (56 - 8 * i));
}

Answer read_answer(std::string_view bytes, std::uint64_t nonce) noexcept {
  Answer answer;
  if (bytes.size() < kMessageBytes) return answer;
  const auto first = static_cast<unsigned char>(bytes[0]);
  const unsigned mode = first & 7, version = first >> 3 & 7;
  if (mode != kServer || version < 1 || version > kVersion || number(bytes, kOrigin, 8) != nonce) return answer;

  answer.verdict = Verdict::useless;
  answer.stratum = static_cast<std::uint8_t>(bytes[kStratum]);
  if (answer.stratum == 0) {
    // Other codes, or none, come from a server that has no time yet.
    const int code = static_cast<int>(number(bytes, kReference, 4));
    if (code != kKissRate && code != kKissDeny && code != kKissRestricted) return answer;
    answer.verdict = Verdict::kiss;
    answer.kiss = code;
    return answer;
  }
  if (answer.stratum > kMostStratum || first >> 6 == kNotSynchronised) return answer;
  // A client may be told of half of the delay (RFC 5905, A.5.5.3).
  const std::uint64_t distance = number(bytes, kRootDelay, 4) / 2 + number(bytes, kRootDispersion, 4);
  const std::uint64_t received = number(bytes, kReceive, 8), sent = number(bytes, kTransmit, 8);
  if (distance >= kMostDistance || received == 0 || sent == 0) return answer;
  answer.received_ns = unix_ns(received);
  answer.sent_ns = unix_ns(sent);
  if (answer.received_ns >= 0 && answer.sent_ns >= answer.received_ns) answer.verdict = Verdict::time;
  return answer;
}

}  // namespace coir::sntp
