#pragma once

#include <coir/http/server.h>
#include <coir/pressure.h>
#include <coir/serial.h>

#include <initializer_list>

#include "http/session/connection.h"
#include "http/session/connection_records.h"
#include "http/session/engine.h"
#include "http/session/session.h"

namespace coir::http {

// SerialEngine is the engine of a build without fibers: it serves one connection at a time, with one session. All
// others are records in its lists, and poll(2) tells which have something to say.
//
//   accept -> idle_ -> (readable) -> ready_ -> served -> idle_ ...
//
// Connections that are readable at the same time are served in the order in which they became idle, one turn each: a
// turn ends when all that has arrived is answered. A client that owes bytes (the rest of a head, the end after an
// error) or never pauses keeps the session beyond kTurnNs only while nobody else wants it.
class SerialEngine : public Engine {
 public:
  static SerialEngine* create(const ServerOptions& options) noexcept;
  static void destroy(SerialEngine* engine) noexcept;

  std::expected<void, Error> add(TcpListener&& listener, TlsContextSlot* tls) noexcept;
  std::expected<void, Error> start() noexcept { return {}; }
  void begin_stop() noexcept;
  bool stopped() noexcept { return stopping_ && records_.taken() == 0; }
  std::expected<void, Error> stop(Deadline deadline) noexcept;
  std::size_t serve_until(std::initializer_list<int> signals, std::chrono::milliseconds drain_timeout) noexcept;
  ServerGauges gauges() const noexcept;

  // rest puts a connection among the idle ones, or closes it when the server stops. True: it is no longer the
  // session's.
  bool rest(Connection& connection) noexcept;
  // close ends a connection that stands in no list.
  void close(Connection& connection) noexcept;
  // next_or_release: who comes next is found by the loop of serve_until.
  static Connection* next_or_release(Session&) noexcept { return nullptr; }

  static void end_handshake(Connection&) noexcept {}
  // may_linger: one that lingers holds its record and no memory of handshakes.
  static bool may_linger(Connection&) noexcept { return true; }

  // evict_idle closes the connection that may be evicted first. False: there is none.
  bool evict_idle() noexcept { return make_room(evictable_since()); }

  // end_silent_handshake closes one whose client has owed a flight for kSilenceNs. False: there is none.
  bool end_silent_handshake() noexcept { return close_handshake(monotonic_ns() - kSilenceNs); }

  // begin_exchange is where the progress of an exchange, or of the head of one, is measured from.
  static void begin_exchange(Connection& connection) noexcept;
  // Around waiting for a client: for bytes that it owes, or until it takes some. begin_waiting waits until it may go on
  // or `deadline` has passed; when another client wants the session it shuts the stream down, for a head once the turn
  // is over, for content once it has moved slowly for some seconds, and end_waiting returns false.
  void begin_waiting(Connection& connection, Direction direction, Owes owes, Deadline deadline) noexcept;
  bool end_waiting(Connection&) const noexcept { return !turned_away_; }

  // yield_turn tells whether the connection being served may go on: its turn is not over, or nobody else wants one.
  bool yield_turn() noexcept;

  bool stopping() const noexcept { return stopping_; }

 private:
  friend class Engine;

  static constexpr std::int64_t kTurnNs = 100'000'000;
  struct Stop;

  SerialEngine(const ServerOptions& given, Session* session, Connection* connections, pollfd* entries) noexcept;

  // serial_serving.cpp: whom to serve
  void serve_round() noexcept;
  void await_head(int fd, Deadline deadline) noexcept;
  void await_content(Connection& connection, Deadline deadline) noexcept;
  void watch(int fd) noexcept;
  void collect() noexcept;
  bool others_want() noexcept;
  void serve_ready() noexcept;
  void expire_idle() noexcept;
  std::int64_t expiry_ns(const Connection& connection) const noexcept;
  Deadline turn_end() const noexcept { return Deadline::at_ns(turn_began_ns_ + kTurnNs); }

  // serial_engine.cpp: connections come and go
  void accept_from(std::size_t number) noexcept;
  bool reserve_one(std::size_t number) noexcept;
  void refuse_one(std::size_t number) noexcept;
  bool close_handshake(std::int64_t not_after_ns) noexcept;
  std::int64_t evictable_since() const noexcept;
  bool make_room(std::int64_t not_after_ns) noexcept;
  std::size_t close_longest_idle(std::size_t wanted) noexcept;
  void close_idle(Connection& connection, Atomic<std::uint64_t>& counter) noexcept;

  Session* const session_;
  ConnectionRecords records_;
  // What poll is asked: [0] is wait_any's, [1] the connection being served, then listeners, then idle ones in order.
  pollfd* const entries_;
  std::size_t entry_count_ = 0;

  ConnectionList idle_;
  ConnectionList ready_;
  std::size_t active_ = 0;

  std::int64_t turn_began_ns_ = 0;
  Deadline pause_end_ = Deadline::now();  // until then nothing is accepted: the kernel was short
  bool turned_away_ = false;
  bool stopping_ = false;
  Relief idle_connections_{PressureStep::close_idle,
                           [](void* self, std::size_t wanted) noexcept {
                             return static_cast<SerialEngine*>(self)->close_longest_idle(wanted);
                           },
                           this};
  std::size_t listener_count_ = 0;
  TcpListener listeners_[Server::kMaxListeners];
  TlsContextSlot* tls_[Server::kMaxListeners] = {};  // of each listener, or null
};

}  // namespace coir::http
