#pragma once

#include <coir/config.h>
#include <coir/deadline.h>
#include <coir/detail/intrusive_list.h>
#include <coir/spinlock.h>
#if !COIR_NO_ASYNC
#include <coir/semaphore.h>
#endif

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string_view>

#include "client/client_connection.h"

namespace coir::http {

// ConnectionPool keeps a client's connections between requests, the latest used first, and counts all that are open.
// From fibers and threads.
class ConnectionPool {
 public:
  ConnectionPool(std::uint32_t most_open, std::uint32_t most_resting) noexcept
      : places_(most_open), most_open_(most_open), most_resting_(most_resting) {}

  // enter waits for one of the places that requests under way have; leave gives it back. Errors: timed_out, cancelled;
  // limit (no place, and nothing that could free one while this caller waits).
  std::expected<void, Error> enter(Deadline deadline) noexcept;
  void leave() noexcept;

  // take returns a resting connection of that key that is quiet, or null. Those that are not, and those whose time is
  // up, are closed.
  ClientConnection* take(std::string_view key) noexcept;
  // admit counts a new connection, for which the longest resting makes room. forget is for one that is not rested
  // again.
  void admit() noexcept;
  void forget() noexcept;
  // rest keeps a connection until a time.
  void rest(ClientConnection& connection, std::int64_t until_ns) noexcept;

  // close_resting closes the longest resting until `wanted` bytes were refunded, and returns how many were.
  std::size_t close_resting(std::size_t wanted, bool in_good_order) noexcept;

  std::size_t resting() const noexcept { return resting_.load(std::memory_order_relaxed); }
  std::size_t open() const noexcept { return open_.load(std::memory_order_relaxed); }

 private:
  using Stack = coir::detail::IntrusiveList<ClientConnection>;

  void take_out(ClientConnection& connection) noexcept;
  static void close_all(Stack& gone) noexcept;

#if COIR_NO_ASYNC
  std::uint64_t places_;
#else
  Semaphore places_;
#endif
  mutable Spinlock lock_;
  Stack list_;                      // the longest resting at its end
  Atomic<std::size_t> resting_{0};  // changes under lock_
  Atomic<std::size_t> open_{0};     // changes under lock_
  const std::uint32_t most_open_;
  const std::uint32_t most_resting_;
};

}  // namespace coir::http
