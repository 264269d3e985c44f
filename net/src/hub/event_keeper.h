#pragma once

#include <coir/events.h>

#include <optional>

#include "hub/history.h"
#include "hub/hub.h"

namespace coir::http {

// EventKeeper is an EventHub. A subscriber's cursor is its connection's mark, the sequence number, and part, the offset.
//
// Subscribers that have had everything rest for reading, in the order of their cursors: each is put behind the others
// with the lock held and nothing new in the history. So the sender takes from the front until it meets one that has had
// everything. Those whose sockets are full rest for writing.
//
// The sender to a subscriber owns its connection: the hub's fiber, or the fiber that its readiness has woken. Bytes of the
// history are copied under the lock and sent without it.
class EventKeeper final : public Hub {
 public:
  static EventKeeper* create(const EventHubOptions& options) noexcept;
  static void destroy(EventKeeper* keeper) noexcept;
  ~EventKeeper() { leave_all(); }

  std::expected<void, Error> publish(const ServerEvent& event) noexcept;
  void subscribe(Exchange& exchange) noexcept;
  void disconnect_all() noexcept;

  // These are Hub's and Keeper's.
  void begin(Connection& connection, std::string_view sent, KeptMemory memory) noexcept override;
  void serve(Connection& connection, KeptMemory memory) noexcept override;
  void work(bool told) noexcept override;
  Deadline next_work() const noexcept override;

 private:
  static constexpr std::size_t kPieceBytes = 4096;
  static constexpr std::size_t kMissedBytes = 1024;

  EventKeeper(const EventHubOptions& options, History&& history) noexcept
      : Hub("event hub"), options_(options), history_(std::move(history)) {}

  // send_news sends to a connection that belongs to the caller until it has had everything, or its socket is full, or
  // it is closed: then it rests or is gone. `readable`: it may have said something.
  void send_news(Connection& connection, KeptMemory memory, bool readable) noexcept;
  // read_news copies what lies ahead of the connection. Nothing: it has fallen off.
  std::optional<std::size_t> read_news(const Connection& connection, std::span<char> into) noexcept;
  bool advance(Connection& connection, std::size_t bytes) noexcept;
  void send_to_all() noexcept;
  void let_fall(Connection& connection) noexcept;

  // These need the lock.
  HistoryCursor cursor(const Connection& connection) const noexcept { return {connection.mark, connection.part}; }
  bool has_news(const Connection& connection) const noexcept {
    return connection.mark != history_.newest().sequence || connection.part != 0;
  }

  const EventHubOptions options_;
  History history_;
  std::uint32_t missed_bytes_ = 0;
  char missed_[kMissedBytes];
  char piece_[kPieceBytes];  // the fiber's
  char dropped_[64];         // what subscribers say
};

}  // namespace coir::http
