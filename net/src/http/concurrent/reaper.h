#pragma once

#include <coir/fiber.h>

#include "http/concurrent/dispatcher.h"
#include "http/concurrent/evictor.h"

namespace coir::http {

// Reaper is a fiber that looks around periodically: it closes connections whose time is over, frees memory that is not
// needed, and tries again where a stack or a session was missing.
class Reaper {
 public:
  Reaper(Engine& engine, Dispatcher& dispatcher, Evictor& evictor) noexcept
      : engine_(engine), dispatcher_(dispatcher), evictor_(evictor) {}
  Reaper(const Reaper&) = delete;
  Reaper& operator=(const Reaper&) = delete;

  // start spawns the fiber. False: there is no stack for it.
  bool start() noexcept;
  void cancel() noexcept { static_cast<void>(fiber_.cancel()); }
  bool alive() const noexcept { return fiber_.alive(); }

  // close_all_resting closes every connection that rests, when the server stops; one in the middle of a head is served.
  void close_all_resting() noexcept;

 private:
  void run() noexcept;
  void close_late_handshakes() noexcept;
  void serve_half_heads(std::int64_t not_after_ns) noexcept;

  Engine& engine_;
  Dispatcher& dispatcher_;
  Evictor& evictor_;
  FiberRef fiber_;
};

}  // namespace coir::http
