#pragma once

#include <coir/http/server.h>

#include "http/session/connection.h"

namespace coir::http {

struct Session;

// Engine is the contract between a Server, its sessions and what runs them: FiberEngine (http/fibers), or SerialEngine
// (http/serial) in a build without fibers. A program holds one of the two, which http/engine.cpp calls; nothing is
// virtual.
class Engine {
 public:
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // What a Server asks; http/server.h tells the meaning.
  static Engine* create(const ServerOptions& options) noexcept;
  static void destroy(Engine* engine) noexcept;
  std::expected<void, Error> add(TcpListener&& listener, TlsContextSlot* tls) noexcept;
  std::expected<void, Error> start() noexcept;
  void begin_stop() noexcept;
  bool stopped() noexcept;
  std::expected<void, Error> stop(Deadline deadline) noexcept;
  std::size_t serve_until(std::initializer_list<int> signals, std::chrono::milliseconds drain_timeout) noexcept;
  ServerGauges gauges() noexcept;

  // What a session asks.

  // rest puts a connection to sleep until it has something to say. False: it has already, go on serving it.
  [[nodiscard]] bool rest(Connection& connection) noexcept;
  // close ends a connection that stands in no list.
  void close(Connection& connection) noexcept;
  // next_or_release gives a session back, or returns the next connection that waits for one.
  Connection* next_or_release(Session& session) noexcept;

  // end_handshake tells that a connection's handshake, if one was under way, is over, with success or without.
  void end_handshake(Connection& connection) noexcept;
  // may_linger tells whether a connection whose handshake has failed may go on waiting for its client to read why.
  bool may_linger(Connection& connection) noexcept;
  // evict_idle closes the connection that may be evicted first. False: there is none.
  bool evict_idle() noexcept;
  // end_silent_handshake closes one whose client has owed a flight for kSilenceNs. False: there is none.
  bool end_silent_handshake() noexcept;

  // begin_exchange is where the progress of an exchange, or of the head of one, is measured from.
  void begin_exchange(Connection& connection) noexcept;
  // begin_waiting and end_waiting surround a wait for a client: for bytes that it owes, or until it takes some. The
  // engine may end the wait early when others want the session: it shuts the stream down, and end_waiting returns
  // false.
  void begin_waiting(Connection& connection, Direction direction, Owes owes, Deadline deadline) noexcept;
  bool end_waiting(Connection& connection) noexcept;

  // yield_turn lets others be served for a moment. False: it cannot, and they have waited long enough for this connection
  // to be the last one's.
  bool yield_turn() noexcept;

  bool stopping() noexcept;

  ServerOptions options;
  ServerCounters counters;

 protected:
  explicit Engine(const ServerOptions& given) noexcept : options(given) {}
  ~Engine() = default;

  // connection_bytes is what one connection costs.
  std::size_t connection_bytes() const noexcept;
};

}  // namespace coir::http
