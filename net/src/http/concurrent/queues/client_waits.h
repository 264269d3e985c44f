#pragma once

#include <coir/http/server.h>
#include <coir/spinlock.h>

#include "http/connection/connection.h"

namespace coir::http {

// ClientWaits holds the connections whose fibers wait for their clients, and ends the waits for the slowest of them
// when others want their sessions. It takes the dispatcher's lock by itself.
class ClientWaits {
 public:
  ClientWaits(Spinlock& lock, ServerCounters& counters) noexcept : lock_(lock), counters_(counters) {}

  // begin and end are Engine::begin_waiting and end_waiting. end may yield.
  void begin(Connection& connection, Direction direction, Owes owes) noexcept;
  bool end(Connection& connection) noexcept;

  // end_slow_heads ends the waits for clients that owe a head, or the end of their side, for 100 ms or more, so that a
  // few slow ones cannot hold every session. A byte now and then renews nothing.
  void end_slow_heads() noexcept;

  // end_heads ends all waits for heads, when the server has been stopping for long enough.
  void end_heads() noexcept;

  // end_all ends every wait, and what the clients could still be sent.
  void end_all() noexcept;

  // end_slowest_transfer ends the wait for the client that has taken or sent the fewest bytes a second, of those that
  // have been waited for for 2 s in their exchange. Waits whose places are lent count only where others want memory. Bytes
  // that the kernel still holds for a client do not count as taken; a client that has done its part is spared.
  void end_slowest_transfer(bool for_memory) noexcept;

 private:
  // take picks a wait, with the lock held, for which the caller then calls shut_down without it.
  void take(Connection& connection) noexcept;
  static void shut_down(Connection& connection) noexcept;
  static bool has_done_its_part(const Connection& connection) noexcept;
  // end_each ends the waits of all connections for which `is_meant` holds, which is asked with the lock.
  template <class Meant>
  void end_each(Meant is_meant) noexcept;

  Spinlock& lock_;
  ServerCounters& counters_;
  ConnectionList list_;
};

}  // namespace coir::http
