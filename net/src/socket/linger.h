#pragma once

#include <cstddef>
#include <cstdint>

namespace coir {

// Linger ends a connection whose peer has yet to read the last bytes sent to it. If bytes are unread at close, or
// arrive afterwards, the kernel resets the connection and the peer may lose those bytes. So this side shuts down its
// writing and drops what arrives until the peer ends too, within bounds:
//
//   stream.shutdown_write();
//   Linger linger;
//   for (;;) {
//     const Linger::Step step = linger.drop(fd);
//     if (step == over || (step == waits && !wait(fd, readable, deadline))) break;
//   }
//
// The caller sets the bound in time.
class Linger {
 public:
  // over: the peer has ended, or has sent kMostBytes. waits: nothing more has arrived. more: others may run in between.
  enum class Step : std::uint8_t { over, waits, more };
  static constexpr std::size_t kMostBytes = 4 * 1024 * 1024;

  // drop reads and drops the bytes that have arrived, up to kTurnBytes. Never waits. Fiber or thread.
  Step drop(int fd) noexcept;

 private:
  static constexpr std::size_t kTurnBytes = 64 * 1024;

  std::size_t dropped_ = 0;
};

}  // namespace coir
