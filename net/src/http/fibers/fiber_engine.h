#pragma once

#include <coir/atomic.h>
#include <coir/fiber.h>
#include <coir/http/server.h>
#include <coir/pressure.h>
#include <coir/spinlock.h>

#include "http/session/connection.h"
#include "http/session/connection_records.h"
#include "http/session/engine.h"
#include "http/session/session.h"

namespace coir::http {

// FiberEngine is the engine of a build with fibers: it lies at the start of one reserved mapping, followed by the array
// of connections and the array of sessions, both of which are touched only as far as they are used.
class FiberEngine : public Engine {
 public:
  static FiberEngine* create(const ServerOptions& options) noexcept;
  static void destroy(FiberEngine* engine) noexcept;

  // starting.cpp, and draining.cpp for serve_until
  std::expected<void, Error> add(TcpListener&& listener, TlsContextSlot* tls) noexcept;
  std::expected<void, Error> start() noexcept;
  void begin_stop() noexcept;
  bool stopped() noexcept;
  std::expected<void, Error> stop(Deadline deadline) noexcept;
  std::size_t serve_until(std::initializer_list<int> signals, std::chrono::milliseconds drain_timeout) noexcept;
  ServerGauges gauges() noexcept;

  // What a session asks, as Engine tells.
  [[nodiscard]] bool rest(Connection& connection) noexcept;
  void close(Connection& connection) noexcept;
  Connection* next_or_release(Session& session) noexcept;

  void end_handshake(Connection& connection) noexcept;
  // may_linger: no other waits for its place among the handshakes.
  bool may_linger(Connection& connection) noexcept;
  bool evict_idle() noexcept;
  // end_silent_handshake closes one that lingers, too.
  bool end_silent_handshake() noexcept;

  static void begin_exchange(Connection& connection) noexcept;
  // begin_waiting: when others want the session, the wait may be ended early: of a head 100 ms after it began, of
  // content, asked for or sent, after 2 s where no exchange has progressed less. end_waiting then returns false, and
  // the stream is shut down: its reading side, or both to end a write.
  void begin_waiting(Connection& connection, Direction direction, Owes owes, Deadline deadline) noexcept;
  bool end_waiting(Connection& connection) noexcept;

  static bool yield_turn() noexcept {
    yield();
    return true;
  }

  bool stopping() const noexcept { return stopping_.load(std::memory_order_relaxed); }

 private:
  friend class Engine;

  FiberEngine(const ServerOptions& given, Connection* connections, Session* sessions, std::uint32_t* given_sessions,
              std::size_t mapped) noexcept
      : Engine(given),
        mapped_bytes_(mapped),
        sessions_(sessions),
        given_sessions_(given_sessions),
        records_(connections, given.max_connections) {}

  // memory.cpp
  void watch_memory() noexcept;
  bool await_memory() noexcept;
  std::size_t give_sessions(std::size_t most) noexcept;
  void give_what_lies_idle() noexcept;
  std::size_t close_longest_idle(std::size_t wanted) noexcept;
  std::int64_t evictable_since() const noexcept;

  // accepting.cpp
  void accept_all(std::size_t number) noexcept;
  void admit(TcpStream&& stream, std::size_t number) noexcept;
  Connection* take_evictable(bool& hopeful) noexcept;
  Connection* evict_one() noexcept;

  // fiber_engine.cpp
  static void wake(RestingWait& record) noexcept;
  void begin_serving(Connection& connection) noexcept;
  void spawn_standby() noexcept;
  void serve_waiting() noexcept;
  bool has_session() const noexcept;
  bool want_standby() noexcept;
  Session* take_session() noexcept;
  void give_session(Session& session) noexcept;
  Connection* take_longest_idle(std::int64_t not_after_ns) noexcept;
  ConnectionList& asleep(const Connection& connection) noexcept {
    return connection.tls != nullptr ? securing_ : idle_;
  }
  void end_slow_heads() noexcept;
  void end_slowest_exchange() noexcept;
  static void end_wait(Connection& connection) noexcept;

  // handshakes.cpp
  // next_waiting is who is to be served next: of those for whom there is room, the one that has waited for longest.
  Connection* next_waiting() const noexcept;
  // take_out takes it out of its list.
  void take_out(Connection& connection) noexcept;
  void close_late_handshakes() noexcept;
  bool hellos_wait() noexcept;
  // handshakes_full tells whether one waits for the end of another. With the lock.
  bool handshakes_full() const noexcept { return hellos_.front() != nullptr && handshakes_ >= options.max_handshakes; }
  // take_handshake takes out of those asleep before the end of their handshake one that `is_meant`. With the lock.
  template <class Meant>
  Connection* take_handshake(Meant is_meant) noexcept {
    for (Connection* connection = securing_.front(); connection != nullptr; connection = connection->next) {
      if (!is_meant(*connection) || !disarm_resting_wait(*connection)) continue;
      securing_.remove(*connection);
      return connection;
    }
    return nullptr;
  }

  // reaping.cpp
  void reap() noexcept;
  void try_waiting() noexcept;
  // close_asleep closes whom `take`, which gets the lock, takes out of a list, until it returns null, and counts them.
  template <class Take>
  void close_asleep(Atomic<std::uint64_t>& counter, Take take) noexcept {
    for (;;) {
      Connection* connection;
      {
        Locked locked(lock_);
        connection = take();
      }
      if (connection == nullptr) return;
      counter.fetch_add(1, std::memory_order_relaxed);
      close(*connection);
    }
  }
  void close_all_asleep() noexcept;
  void expire_waiting(std::int64_t not_after_ns) noexcept;

  std::size_t mapped_bytes_;
  Session* const sessions_;
  std::uint32_t* const given_sessions_;  // the numbers of those whose memory was given back, last one last

  Spinlock lock_;  // guards what follows up to listeners_
  ConnectionRecords records_;
  ConnectionList idle_;
  ConnectionList securing_;  // asleep before the end of their handshake
  ConnectionList waiting_;
  ConnectionList hellos_;  // waiting for their handshake to begin
  ConnectionList reading_;
  Session* free_sessions_ = nullptr;
  std::size_t sessions_used_ = 0;
  std::size_t given_count_ = 0;
  std::size_t free_count_ = 0;   // of free_sessions_
  std::size_t spare_count_ = 0;  // the least that it was since the reaper's last round
  bool standby_ = false;
  std::size_t active_ = 0;
  std::size_t handshakes_ = 0;  // under way
  std::size_t lingering_ = 0;   // of these, failed

  Atomic<std::int64_t> full_at_ns_ = 0;  // when there was last no connection to evict, or 0
  Atomic<bool> stopping_ = false;
  Relief spare_sessions_{
      PressureStep::trim,
      [](void* self, std::size_t) noexcept { return static_cast<FiberEngine*>(self)->give_sessions(SIZE_MAX); }, this};
  Relief idle_connections_{PressureStep::close_idle,
                           [](void* self, std::size_t wanted) noexcept {
                             return static_cast<FiberEngine*>(self)->close_longest_idle(wanted);
                           },
                           this};
  std::size_t listener_count_ = 0;
  TcpListener listeners_[Server::kMaxListeners];
  TlsContextSlot* tls_[Server::kMaxListeners] = {};  // of each listener, or null
  FiberRef acceptors_[Server::kMaxListeners];
  FiberRef reaper_;
};

// coarse_ns is the monotonic clock as of the last tick (1 to 4 ms): it costs no reading of the hardware.
std::int64_t coarse_ns() noexcept;

}  // namespace coir::http
