#pragma once

#include <cstddef>
#include <cstdint>

namespace coir {

// Linger is the end of a connection whose peer has its last word still to read. To close with bytes unread, or to have
// more arrive afterwards, makes the kernel reset the connection, and then the peer may lose that word. So this side
// shuts its writing down, and goes on dropping what comes until the peer ends too, within bounds:
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

  // drop takes what has arrived, up to kTurnBytes. Never waits. Fiber or thread.
  Step drop(int fd) noexcept;

 private:
  static constexpr std::size_t kTurnBytes = 64 * 1024;

  std::size_t dropped_ = 0;
};

}  // namespace coir
