#pragma once

#include <poll.h>

#include <coir/deadline.h>
#include <coir/tcp.h>

#include <cstddef>
#include <expected>
#include <span>

#include "http/connection/connection.h"
#include "http/session/keeper.h"

namespace coir::http {

// PollSet is what a build without fibers asks poll(2): one entry for the connection being served, one for each
// listener, and one for each connection that rests or is kept, in the order of their lists. Entry 0 belongs to
// wait_any.
class PollSet {
 public:
  static constexpr std::size_t kOwnEntries = 2;

  // `entries` has room for kOwnEntries, kMaxListeners listeners and all connections.
  explicit PollSet(pollfd* entries) noexcept : entries_(entries) {}
  PollSet(const PollSet&) = delete;
  PollSet& operator=(const PollSet&) = delete;

  // watch fills in the entries: `fd`, or -1 for none, the listeners if `accepting`, the resting connections and those
  // of the keepers.
  void watch(int fd, std::span<const TcpListener> listeners, bool accepting, const ConnectionList& resting,
             Keeper* keepers) noexcept;

  // wait polls what watch has filled in. Errors: as wait_any.
  [[nodiscard]] std::expected<std::size_t, Error> wait(Deadline deadline) noexcept;

  // These tell what the last poll found. The list of resting connections has not changed since watch, but for the entry
  // last visited.
  bool is_served_ready() const noexcept { return entries_[1].revents != 0; }
  // has_connection is false for a listener that was added since watch.
  bool has_connection(std::size_t listener) const noexcept {
    return kOwnEntries + listener < resting_at_ && entries_[kOwnEntries + listener].revents != 0;
  }
  // each_ready calls `visit` with each resting connection that poll has found ready, which `visit` may take out of the
  // list. It ends early when `visit` returns false.
  template <class Visit>
  void each_ready(const ConnectionList& resting, Visit visit) const noexcept {
    const pollfd* entry = entries_ + resting_at_;
    for (Connection* connection = resting.front(); connection != nullptr; ++entry) {
      Connection* const next = connection->next;
      if (entry->revents != 0 && !visit(*connection)) return;
      connection = next;
    }
  }

  // each_ready_kept calls `visit` with each kept connection that poll has found ready, which `visit` may take out of
  // its list. If a list has changed since watch, because a signal's callback has written to a stream, the rest of
  // them wait for the next poll.
  template <class Visit>
  void each_ready_kept(Keeper* keepers, Visit visit) const noexcept {
    const pollfd* entry = entries_ + kept_at_;
    for (Keeper* keeper = keepers; keeper != nullptr; keeper = keeper->next) {
      for (const Direction direction : kDirections) {
        for (Connection* connection = keeper->resting(direction).front(); connection != nullptr; ++entry) {
          Connection* const next = connection->next;
          if (entry == entries_ + count_ || entry->fd != connection->stream.fd()) return;
          if (entry->revents != 0) visit(*connection);
          connection = next;
        }
      }
    }
  }

 private:
  static constexpr Direction kDirections[] = {Direction::readable, Direction::writable};

  pollfd* const entries_;
  std::size_t resting_at_ = kOwnEntries;
  std::size_t kept_at_ = kOwnEntries;
  std::size_t count_ = 0;
};

}  // namespace coir::http
