#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace coir::sntp {

inline constexpr std::size_t kMessageBytes = 48;

// write_request writes a client's request (version 4). `nonce` stands for the time of sending: the answer repeats it,
// and nobody learns this machine's clock.
void write_request(std::span<char, kMessageBytes> out, std::uint64_t nonce) noexcept;

enum class Verdict : std::uint8_t {
  time,      // it tells the time
  kiss,      // the server does not want to be asked
  useless,   // of the server that was asked, but without a time to believe
  not_ours,  // no answer to that request
};

struct Answer {
  Verdict verdict = Verdict::not_ours;
  std::uint8_t stratum = 0;
  int kiss = 0;                  // of a kiss: its code, as coir/net/sntp.h has them
  std::int64_t received_ns = 0;  // when the server got the request, and sent the answer: since 1970
  std::int64_t sent_ns = 0;
};

// read_answer reads what came as an answer to the request with that nonce. More than kMessageBytes are extensions and
// signatures, which are not looked at.
Answer read_answer(std::string_view bytes, std::uint64_t nonce) noexcept;

// unix_ns is the time of an NTP timestamp, in nanoseconds since 1970; negative where it lies outside the century that
// begins with 2026, which decides the era.
std::int64_t unix_ns(std::uint64_t timestamp) noexcept;

}  // namespace coir::sntp
