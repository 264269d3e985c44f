#pragma once

#include <coir/net/stream.h>

#include <algorithm>
#include <utility>

#include "socket/kernel.h"

namespace coir {

// SlowPeer tells whether the peer of a full socket is stuck: whether it has taken nothing for a whole timeout. The kernel
// reports room only when a third of its buffer is free, which may be more than a slow peer takes in the time. So each half of
// the timeout without such news the owner of the socket asks what the peer has acknowledged meanwhile.
class SlowPeer {
 public:
  constexpr SlowPeer() noexcept = default;
  // The first half begins. On a Unix socket the peer acknowledges by reading.
  explicit SlowPeer(int fd) noexcept : unsent_(kernel::unsent(fd)) {}

  static constexpr std::chrono::nanoseconds half(std::chrono::milliseconds timeout) noexcept {
    return std::chrono::nanoseconds(timeout) / 2;
  }

  // is_stuck ends a half: true after two in which the peer has taken nothing. More unsent bytes than before had room, too: a
  // part of a TLS record. From a kernel that does not tell, the same number comes each time: the clock decides.
  [[nodiscard]] bool is_stuck(int fd) noexcept {
    const int before = std::exchange(unsent_, kernel::unsent(fd));
    return std::exchange(took_nothing_, unsent_ == before) && took_nothing_;
  }

 private:
  int unsent_ = 0;
  bool took_nothing_ = false;
};

// while_taking has `attempt`, which has found the socket full, wait for room until the deadline, or until the peer is stuck.
// Errors: those of the attempt; timed_out for either.
template <class Attempt>
std::expected<std::size_t, Error> while_taking(int fd, std::chrono::milliseconds timeout, Deadline deadline,
                                               Attempt attempt) noexcept {
  for (SlowPeer peer(fd);;) {
    auto sent = attempt(std::min(deadline, Deadline::after(SlowPeer::half(timeout))));
    if (sent || !sent.error().is_late() || deadline.passed() || peer.is_stuck(fd)) return sent;
  }
}

// write_some_patiently is Stream::write_some to a peer that is waited for as by while_taking.
inline std::expected<std::size_t, Error> write_some_patiently(Stream& stream, std::span<const iovec> from,
                                                              std::chrono::milliseconds timeout,
                                                              Deadline deadline) noexcept {
  const auto attempt = [&](Deadline until) { return stream.write_some(from, until); };
  auto sent = attempt(Deadline::now());
  if (sent || !sent.error().is_late() || deadline.passed()) return sent;
  return while_taking(stream.fd(), timeout, deadline, attempt);
}

}  // namespace coir
