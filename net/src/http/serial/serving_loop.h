#pragma once

#include <coir/serial.h>

#include <initializer_list>

#include "http/connection/connection.h"
#include "http/serial/poll_set.h"
#include "http/session/session.h"

namespace coir::http {

class SerialEngine;

// ServingLoop is the one loop of a server without fibers: it chooses whom to serve next, and when to stop. A client
// that owes the rest of a head rests, with what has come of it. One that owes the end after an error, or that never
// pauses, keeps the session beyond kTurnNs only while nobody else wants it.
class ServingLoop {
 public:
  ServingLoop(SerialEngine& engine, OwnSession* session, pollfd* entries) noexcept;
  ServingLoop(const ServingLoop&) = delete;
  ServingLoop& operator=(const ServingLoop&) = delete;

  // serve_until is Server's function of the same name.
  std::size_t serve_until(std::initializer_list<int> signals, std::chrono::milliseconds drain_timeout) noexcept;
  // serve_ready serves the connections that are ready, one turn each; serves tells whether one is being served.
  void serve_ready() noexcept;
  bool serves() const noexcept { return serves_; }
  // end_wait follows a reload: whoever waits for all that are watched watches them anew. It tells whether nobody does.
  bool end_wait() noexcept {
    reloaded_ = waits_;
    return !waits_;
  }

  // These are Engine's functions of the same names. begin_waiting waits until the client is ready or `deadline` has
  // passed. When another client wants the session it shuts the stream down, and end_waiting returns false: for a head
  // once the turn is over, for content once it was slow for some seconds.
  void begin_waiting(Connection& connection, Direction direction, Owes owes, Deadline deadline) noexcept;
  bool end_waiting() const noexcept { return !turned_away_; }
  bool yield_turn() noexcept;

 private:
  static constexpr std::int64_t kTurnNs = 100'000'000;
  struct Stop;

  void serve_round() noexcept;
  // end_heads ends the wait for a head that there is, and every later one.
  void end_heads() noexcept;
  void await_head(int fd, Deadline deadline) noexcept;
  void await_content(Connection& connection, Deadline deadline) noexcept;
  void watch(int fd) noexcept;
  // wait waits for one of those that are watched, and ends when a reload may have changed them, too.
  bool wait(Deadline deadline) noexcept;
  void collect() noexcept;
  bool others_want() noexcept;
  void expire_resting() noexcept;
  std::int64_t expiry_ns(const Connection& connection) const noexcept;
  Deadline turn_end() const noexcept { return Deadline::at_ns(turn_began_ns_ + kTurnNs); }

  SerialEngine& engine_;
  Session* const session_;
  PollSet poll_set_;
  std::int64_t turn_began_ns_ = 0;
  bool serves_ = false;
  bool waits_ = false;     // for all that are watched
  bool reloaded_ = false;  // in the middle of such a wait
  bool turned_away_ = false;
  bool heads_over_ = false;  // the server has been stopping for long enough
  int awaited_head_ = -1;    // the socket of the client that owes a head
};

}  // namespace coir::http
