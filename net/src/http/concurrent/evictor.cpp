#include "http/concurrent/evictor.h"

#include <coir/detail/accounts.h>
#include <coir/fiber.h>
#include <coir/memory_watch.h>

#include "http/connection/coarse_clock.h"
#include "http/connection/half_head.h"
#include "http/connection/shed.h"

namespace coir::http {

using namespace std::chrono_literals;

namespace {

// refuse_half_head tells a client that its request, of which a part has come, is not served.
void refuse_half_head(Connection& connection) noexcept {
  if (!connection.has_half_head) return;
  HalfHead::drop(connection);
  shed(connection.stream, false);
}

}  // namespace

void Evictor::attach() noexcept {
  Pressure::add(unused_sessions_);
  Pressure::add(resting_connections_);
}

void Evictor::detach() noexcept {
  Pressure::remove(unused_sessions_);
  Pressure::remove(resting_connections_);
}

Connection* Evictor::take_evictable(bool& one_ends_soon) noexcept {
  const std::int64_t since = coarse_ns() - std::chrono::nanoseconds(engine_.options.evict_after).count();
  for (;;) {
    Connection* const connection = dispatcher_.take([&](ConnectionQueues& queues) {
      Connection* const silent = queues.take_handshake([&](const Connection& each) { return each.since_ns <= since; });
      if (silent != nullptr) return silent;
      Connection* const resting = queues.take_longest_resting(since);
      return resting != nullptr ? resting : queues.take_half_head(since);
    });
    if (connection == nullptr) return nullptr;
    if (!dispatcher_.serve_arrived(*connection)) {
      dispatcher_.end_handshake(*connection);
      refuse_half_head(*connection);
      engine_.counters.evicted.fetch_add(1, std::memory_order_relaxed);
      return connection;
    }
    one_ends_soon = true;
  }
}

Connection* Evictor::replace_one() noexcept {
  // Milliseconds: on a busy machine it takes some until those that have asked are served.
  constexpr int kTries = 100;
  constexpr std::int64_t kFullForNs = 100'000'000;
  // Connections in service may be done in a moment. When that was awaited in vain just now, a flood is refused at once.
  bool one_ends_soon = coarse_ns() - full_at_ns_.load(std::memory_order_relaxed) > kFullForNs;
  for (int tries = 0; tries < kTries; ++tries) {
    if (Connection* const evicted = take_evictable(one_ends_soon)) return evicted;
    if (!one_ends_soon || !sleep(1ms)) break;
    Connection* const released = dispatcher_.take_record();
    if (released == nullptr) continue;
    if (account::connections.charge(Server::connection_bytes(engine_.options))) return released;
    dispatcher_.return_record(*released);
    break;
  }
  full_at_ns_.store(coarse_ns(), std::memory_order_relaxed);
  return nullptr;
}

bool Evictor::evict_idle() noexcept {
  bool one_ends_soon = false;
  Connection* const connection = take_evictable(one_ends_soon);
  if (connection != nullptr) dispatcher_.close(*connection);
  return connection != nullptr;
}

std::size_t Evictor::close_longest_resting(std::size_t wanted) noexcept {
  std::size_t freed = 0;
  // Heads that are late go first: each holds more than an idle connection, and clients that owe them may have come for that.
  constexpr std::int64_t kLateNs = 1'000'000'000;
  const auto late = [not_after = coarse_ns() - kLateNs](ConnectionQueues& queues) {
    return queues.take_half_head(not_after);
  };
  while (freed < wanted) {
    Connection* const connection = dispatcher_.take(late);
    if (connection == nullptr) break;
    freed += Server::connection_bytes(engine_.options) + sizeof(HalfHead) + connection->half->bytes;
    engine_.counters.evicted.fetch_add(1, std::memory_order_relaxed);
    refuse_half_head(*connection);
    dispatcher_.close(*connection);
  }
  // Streams are closed last: their clients wait for something.
  const std::int64_t since = coarse_ns() - std::chrono::nanoseconds(engine_.options.evict_after).count();
  while (freed < wanted && (evict_idle() || engine_.keepers.evict(since)))
    freed += Server::connection_bytes(engine_.options);
  return freed;
}

void Evictor::relieve() noexcept {
  MemoryWatch::look();
  Pressure::make_room(account::connections, 0);
  if (dispatcher_.starved() && !Pressure::make_room(account::http, sizeof(SessionBuffers))) {
    // The buffers of a handler that waits may have become the spare ones: that frees no memory, but serves the first.
    dispatcher_.grant_places();
    if (dispatcher_.starved()) {
      Pressure::took(pressure::shed);
      constexpr std::int64_t kGraceNs = 500'000'000;
      shed_waiting(coarse_ns() - kGraceNs);
    }
  }
  Pressure::eased();
  dispatcher_.free_surplus();
}

void Evictor::shed_waiting(std::int64_t not_after_ns) noexcept {
  const auto oldest = [&](ConnectionQueues& queues) { return queues.take_waiting(not_after_ns); };
  while (Connection* const connection = dispatcher_.take(oldest)) {
    if (connection->kept) {
      engine_.counters.evicted.fetch_add(1, std::memory_order_relaxed);
      connection->keeper->farewell(*connection);
      connection->keeper->close(*connection);
      continue;
    }
    engine_.counters.refused.fetch_add(1, std::memory_order_relaxed);
    shed(connection->stream, connection->tls != nullptr);
    dispatcher_.close(*connection);
  }
}

}  // namespace coir::http
