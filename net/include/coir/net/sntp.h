#pragma once

// The time, from a server.
//
//   auto sample = query_time("pool.ntp.org", {}, Deadline::after(10s));
//   if (!sample) return complain(sample.error());
//   if (sample->delay < 200ms && !set_clock(sample->offset)) return complain("this needs to be root");

#include <coir/deadline.h>
#include <coir/detail/chrono.h>
#include <coir/error.h>
#include <coir/net/address.h>

#include <cstdint>
#include <expected>
#include <string_view>

namespace coir {

// TimeSample is what a time server told once. A value.
struct TimeSample {
  std::chrono::nanoseconds offset{};  // what the machine's clock lacks: add it, it may be decades or negative
  std::chrono::nanoseconds delay{};   // the way there and back; the offset is wrong by half of it at most
  std::uint8_t stratum = 0;           // 1: the server has a clock of its own ... 15
  Address server;                     // who answered
};

struct TimeQuery {
  std::uint16_t port = 123;
  std::chrono::milliseconds patience{1500};  // for each answer: then the server's next address is asked
  unsigned rounds = 2;                       // how often each address is asked, as datagrams get lost
};

// query_time asks a server for the time by SNTP (RFC 4330, and RFC 5905, section 14): a name or an address, of which the
// first that answers counts. The machine's clock is read and not set.
//
// An answer counts only if it comes from the address and port that was asked, and repeats the random number that was
// sent; others are dropped and the wait goes on. The protocol has no other proof: whoever sits between may lie. A
// server that has no time itself, or whose time lies before the year 2026 or more than a century behind it, is passed
// over as one that does not answer; times after 2036, when the protocol's seconds begin again at 0, are right.
//
// Poll at most once a minute, with jitter, and less often after an error.
//
// From a fiber, a thread or a build without fibers. Nothing is allocated beyond what resolve takes. Errors: those of
// resolve and of coir::wait; temporary (no address answered with a time), timed_out, cancelled; alert (a server refused
// by a kiss of death, RFC 5905, 7.4, and no other address answered: sys holds its code); no_memory, limit (no descriptor
// is left), system (no address could be asked: ENETUNREACH, EHOSTUNREACH, ECONNREFUSED ...).
[[nodiscard]] std::expected<TimeSample, Error> query_time(std::string_view server, const TimeQuery& how = {},
                                                          Deadline deadline = Deadline::never()) noexcept;

// Error::sys of an alert holds the letters of its code, the first letter highest.
inline constexpr int kKissRate = 'R' << 24 | 'A' << 16 | 'T' << 8 | 'E';        // ask less often
inline constexpr int kKissDeny = 'D' << 24 | 'E' << 16 | 'N' << 8 | 'Y';        // do not ask again
inline constexpr int kKissRestricted = 'R' << 24 | 'S' << 16 | 'T' << 8 | 'R';  // do not ask again

// set_clock moves the machine's clock by `by` at once, for every program. Deadlines do not notice. Any thread; never
// waits.
// Errors: invalid (the kernel takes no such time), system (EPERM: it wants root or CAP_SYS_TIME).
[[nodiscard]] std::expected<void, Error> set_clock(std::chrono::nanoseconds by) noexcept;

}  // namespace coir
