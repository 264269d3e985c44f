#pragma once

#include <coir/config.h>
#include <coir/http/feed.h>

#include "http/session/keeper.h"
#include "stream/history.h"

#if !COIR_NO_ASYNC
#include <coir/event.h>
#include <coir/fiber.h>
#endif

namespace coir::http {

// FeedKeeper is a feed. A subscriber's cursor is its connection's mark, the sequence number, and part, the offset.
//
// Subscribers that have had everything rest for reading, in the order of their cursors: each is put behind the others
// with the lock held and nothing new in the history. So the sender takes from the front until it meets one that has had
// everything. Those whose sockets are full rest for writing.
//
// Who sends to a subscriber owns its connection: the sender, a fiber of the feed's, or the fiber that its readiness has
// woken. Bytes of the history are copied under the lock and sent without it.
class FeedKeeper final : public Keeper {
 public:
  static std::expected<FeedKeeper*, Error> create(const FeedOptions& options) noexcept;
  static void destroy(FeedKeeper* keeper) noexcept;

  std::expected<void, Error> publish(const ServerEvent& event) noexcept;
  void subscribe(Exchange& exchange) noexcept;
  std::uint64_t fallen_off() const noexcept { return fallen_off_.load(std::memory_order_relaxed); }

  // These are Keeper's.
  void begin(Connection& connection, std::string_view sent, KeptMemory memory) noexcept override;
  void serve(Connection& connection, KeptMemory memory) noexcept override;
  void farewell(Connection&) noexcept override {}
  void stopping() noexcept override;
  bool stopped() noexcept override;
  Deadline due() const noexcept override { return keep_alive_at_; }
  void tick() noexcept override { send_keep_alives(); }

 private:
  static constexpr std::size_t kPieceBytes = 4096;
  static constexpr std::size_t kMissedBytes = 1024;

  FeedKeeper(const FeedOptions& options, History&& history) noexcept;

  bool start_sender() noexcept;
  void run_sender() noexcept;
  // send_news sends to a connection that belongs to the caller until it has had everything, or its socket is full, or
  // it is closed: then it rests or is gone. `readable`: it may have said something.
  void send_news(Connection& connection, KeptMemory memory, bool readable) noexcept;
  // read_news copies what lies ahead of the connection. Nothing: it has fallen off.
  std::optional<std::size_t> read_news(const Connection& connection, std::span<char> into) noexcept;
  bool advance(Connection& connection, std::size_t bytes) noexcept;
  bool drop_input(Connection& connection, std::span<char> into) noexcept;
  void send_to_all() noexcept;
  void send_keep_alives() noexcept;
  void let_fall(Connection& connection) noexcept;
  void put_off_keep_alive() noexcept;

  // These need the lock.
  HistoryCursor cursor(const Connection& connection) const noexcept { return {connection.mark, connection.part}; }
  bool has_news(const Connection& connection) const noexcept {
    return connection.mark != history_.newest().sequence || connection.part != 0;
  }

  const FeedOptions options_;
  History history_;
  Atomic<std::uint64_t> fallen_off_ = 0;
  Deadline keep_alive_at_ = Deadline::never();
  std::uint32_t missed_bytes_ = 0;
  char missed_[kMissedBytes];
  char piece_[kPieceBytes];  // the sender's
  char dropped_[64];         // what subscribers say
#if !COIR_NO_ASYNC
  Event news_;
  Atomic<bool> published_ = false;  // since the last keep-alive
  Atomic<bool> stops_ = false;
  Atomic<bool> started_ = false;
  Atomic<bool> runs_ = false;
#endif
};

}  // namespace coir::http
