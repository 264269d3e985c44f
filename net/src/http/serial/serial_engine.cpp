#include "http/serial/serial_engine.h"

#include <coir/detail/accounts.h>
#include <coir/ledger.h>
#include <coir/memory_watch.h>
#include <coir/port/memory.h>

#include <memory>
#include <new>

#include "base/rounded.h"
#include "http/connection/coarse_clock.h"
#include "http/connection/half_head.h"
#include "http/connection/shed.h"
#include "socket/kernel.h"

namespace coir::http {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kUnit = 64;

}  // namespace

bool SerialEngine::rest(Connection& connection, std::int64_t since_ns) noexcept {
  if (stopping()) {
    if (connection.tls == nullptr && has_arrived(connection)) return false;
    close(connection);
    return true;
  }
  connection.stream.rest();
  connection.since_ns = since_ns;
  resting.push_back(connection);
  return true;
}

void SerialEngine::close(Connection& connection) noexcept {
  HalfHead::drop(connection);
  connection.stream.close();
  clients.leave(std::exchange(connection.client, 0));
  account::connections.refund(connection_bytes());
  records_.give(connection);
}

void SerialEngine::close_resting(Connection& connection, Atomic<std::uint64_t>& counter) noexcept {
  resting.remove(connection);
  counter.fetch_add(1);
  close(connection);
}

// close_handshake closes the connection whose client has owed a flight for longest, if since `not_after_ns` or before.
bool SerialEngine::close_handshake(std::int64_t not_after_ns) noexcept {
  for (Connection* connection = resting.front(); connection != nullptr && connection->since_ns <= not_after_ns;
       connection = connection->next) {
    if (connection->tls == nullptr || kernel::has_input(connection->stream.fd())) continue;
    close_resting(*connection, counters.evicted);
    return true;
  }
  return false;
}

bool SerialEngine::close_silent_handshake() noexcept {
  return close_handshake(coarse_ns() - kHandshakeSilenceNs);
}

std::int64_t SerialEngine::evictable_since() const noexcept {
  return coarse_ns() - std::chrono::nanoseconds(options.evict_after).count();
}

// make_room frees a record: it closes a handshake that has stalled, or the connection that has rested for longest, if
// since `not_after_ns` or before. A connection whose request has arrived meanwhile is served instead. If all have, the
// newcomers stay in the backlog until the next round.
bool SerialEngine::make_room(std::int64_t not_after_ns) noexcept {
  if (close_handshake(evictable_since())) return true;
  while (Connection* connection = resting.front()) {
    if (!kernel::has_input(connection->stream.fd())) {
      if (connection->since_ns > not_after_ns) return false;
      close_resting(*connection, counters.evicted);
      return true;
    }
    resting.remove(*connection);
    ready.push_back(*connection);
  }
  return false;
}

// close_longest_resting makes room on the ledger, where a handshake takes more than ten established connections.
std::size_t SerialEngine::close_longest_resting(std::size_t wanted) noexcept {
  std::size_t freed = 0;
  while (freed < wanted &&
         (close_handshake(INT64_MAX) || make_room(evictable_since()) || keepers.evict(evictable_since())))
    freed += connection_bytes();
  return freed;
}

// reserve_one reserves a record and memory on the ledger for one more connection. It evicts only when one waits.
bool SerialEngine::reserve_one(std::size_t number) noexcept {
  const bool full = records_.all_taken();
  if (!full && account::connections.charge(connection_bytes())) return true;
  if (!kernel::is_readable(listeners_[number].fd())) return false;
  if (full ? make_room(evictable_since()) && account::connections.charge(connection_bytes())
           : Pressure::charge(account::connections, connection_bytes())) {
    return true;
  }
  // Ready connections may make room when they have been served.
  if (ready.front() == nullptr) shed_one(number);
  return false;
}

// shed_one refuses the first connection in the backlog. Left there, it would be polled for ever.
void SerialEngine::shed_one(std::size_t number) noexcept {
  auto accepted = listeners_[number].accept(Deadline::now());
  if (!accepted) {
    accept_again_ = Deadline::after(50ms);
    return;
  }
  counters.accepted.fetch_add(1);
  counters.refused.fetch_add(1);
  Pressure::took(pressure::shed);
  Stream refused(std::move(*accepted));
  shed(refused, tls_[number] != nullptr);
}

void SerialEngine::accept_from(std::size_t number) noexcept {
  TcpListener& listener = listeners_[number];
  constexpr int kBurst = 32;
  if (!listener.is_open()) return;  // removed since the poll
  MemoryWatch::look();
  Pressure::make_room(account::connections, 0);
  if (MemoryWatch::critical()) {
    Pressure::took(pressure::pause);
    counters.accept_pauses.fetch_add(1);
    accept_again_ = Deadline::after(50ms);
    return;
  }
  Pressure::eased();
  for (int burst = 0; burst < kBurst && !stopping() && reserve_one(number); ++burst) {
    auto accepted = listener.accept(Deadline::now());
    if (accepted) {
      counters.accepted.fetch_add(1);
      const auto client = clients.enter(*accepted);
      if (!client) {
        account::connections.refund(connection_bytes());
        counters.limited_connections.fetch_add(1);
        Stream refused(std::move(*accepted));
        shed(refused, tls_[number] != nullptr, Shed::one_client);
        continue;
      }
      Connection& connection = *records_.take();
      connection.stream = std::move(*accepted);
      connection.tls = tls_[number];
      connection.requests = 0;
      connection.client = *client;
      connection.kept = false;
      connection.listener = marks_[number];
      static_cast<void>(rest(connection, coarse_ns()));
      continue;
    }
    account::connections.refund(connection_bytes());
    if (accepted.error() == ErrorCode::timed_out || accepted.error() == ErrorCode::cancelled) return;
    counters.accept_pauses.fetch_add(1);
    if (kernel_is_short(accepted.error()) && make_room(evictable_since())) continue;
    accept_again_ = Deadline::after(50ms);
    return;
  }
}

std::expected<std::size_t, Error> SerialEngine::add(TcpListener&& listener, TlsContextSlot* tls,
                                                    std::uint8_t mark) noexcept {
  for (std::size_t number = 0; number < Server::kMaxListeners; ++number) {
    if (listeners_[number].is_open()) continue;
    listeners_[number] = std::move(listener);
    tls_[number] = tls;
    marks_[number] = mark;
    return number;
  }
  return std::unexpected(Error{ErrorCode::limit});
}

// remove lets in who waits at the listener: closed with it, the kernel would reset their connections.
void SerialEngine::remove(std::size_t number) noexcept {
  TcpListener& gone = listeners_[number];
  constexpr int kMostBursts = 8;
  for (int burst = 0; burst < kMostBursts && kernel::is_readable(gone.fd()); ++burst) accept_from(number);
  gone.close();
}

// begin_stop may be called while a connection is being served: that one is left alone. Clients that wait at a listener may
// have asked already, if no handshake comes first.
void SerialEngine::begin_stop() noexcept {
  for (std::size_t number = 0; number < Server::kMaxListeners; ++number) {
    if (tls_[number] == nullptr) remove(number);
    listeners_[number].close();
  }
  stopping_.store(true);
  while (Connection* connection = resting.front()) {
    // A client that owes the rest of a head has a second for it.
    if (connection->has_half_head || kernel::has_input(connection->stream.fd())) {
      resting.remove(*connection);
      ready.push_back(*connection);
    } else {
      close_resting(*connection, counters.stopped_idle);
    }
  }
}

std::expected<void, Error> SerialEngine::stop() noexcept {
  begin_stop();
  if (!loop.serves()) loop.serve_ready();
  if (!stopped()) return std::unexpected(Error{ErrorCode::timed_out});
  return {};
}

ServerGauges SerialEngine::gauges() noexcept {
  return {.open = records_.taken(),
          .idle = resting.size(),
          .active = loop.serves() ? std::size_t{1} : 0,
          .waiting = ready.size(),
          .kept = keepers.kept()};
}

SerialEngine::SerialEngine(const ServerOptions& given, OwnSession* session, Connection* connections,
                           pollfd* entries) noexcept
    : Engine(given, false), loop(*this, session, entries), records_(connections, given.max_connections) {}

SerialEngine* SerialEngine::create(const ServerOptions& options) noexcept {
  const std::size_t session_at = rounded(sizeof(SerialEngine), kUnit);
  const std::size_t connections_at = session_at + rounded(sizeof(OwnSession), kUnit);
  const std::size_t entries_at = connections_at + rounded(options.max_connections * sizeof(Connection), kUnit);
  static_assert(sizeof(pollfd) == kDescriptorBytes);
  const std::size_t entries = PollSet::kOwnEntries + Server::kMaxListeners + options.max_connections;
  auto* memory = static_cast<char*>(port::reserve(entries_at + entries * sizeof(pollfd)));
  if (memory == nullptr) return nullptr;
  auto* const engine = new (memory) SerialEngine(options, reinterpret_cast<OwnSession*>(memory + session_at),
                                                 reinterpret_cast<Connection*>(memory + connections_at),
                                                 reinterpret_cast<pollfd*>(memory + entries_at));
  Pressure::add(engine->resting_connections_);
  if (engine->clients.open(options)) return engine;
  destroy(engine);
  return nullptr;
}

void SerialEngine::destroy(SerialEngine* engine) noexcept {
  Pressure::remove(engine->resting_connections_);
  engine->keepers.forget();
  account::connections.refund(engine->records_.taken() * engine->connection_bytes());
  std::destroy_at(engine);
  port::release(engine, 0);
}

}  // namespace coir::http
