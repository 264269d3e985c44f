#pragma once

#include <coir/event.h>
#include <coir/http/server.h>
#include <coir/spinlock.h>

#include <algorithm>

#include "http/concurrent/queues/client_waits.h"
#include "http/concurrent/queues/connection_queues.h"
#include "http/concurrent/queues/handshake_gate.h"
#include "http/concurrent/queues/offered_places.h"
#include "http/concurrent/queues/session_pool.h"
#include "http/concurrent/session_host.h"
#include "http/connection/connection_records.h"
#include "http/session/engine.h"

namespace coir::http {

// Dispatcher brings connections, sessions and fibers together: a connection rests until its client sends something,
// then waits for a session, and a fiber serves it.
//
// One lock guards the records, the queues, the session pool, the handshake gate and the list of waits for clients,
// because each step of a connection changes two of them at once: who takes a connection out of a queue takes a session
// from the pool, or counts at the gate. A lock for each would be taken in turn for every request, in an order to be
// remembered, and none of them is held for more than some tens of instructions. Nothing under the lock parks, allocates
// or makes a system call. In a build for one worker it is nothing at all.
class Dispatcher {
 public:
  Dispatcher(Engine& engine, Connection* connections, SessionBuffers* buffers, std::uint32_t* freed_buffers,
             std::span<pthread_t> threads) noexcept
      : engine_(engine),
        records_(connections, engine.options.max_connections),
        pool_(buffers, freed_buffers, most_buffers(engine.options), engine.options.max_active),
        gate_(engine.options.max_handshakes),
        waits(lock_, engine.counters),
        host(*this, engine.options.handler_stack, threads) {}
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  // most_buffers is for how many sessions address space is reserved: handlers that have given their place away may keep
  // their buffers.
  static std::size_t most_buffers(const ServerOptions& options) noexcept {
    constexpr std::size_t kMost = sizeof(void*) == 8 ? 65'536 : 4096;
    return options.max_active + std::min(options.max_connections, kMost);
  }

  // wake is the RestingWait's of every connection: its client has sent something. On a worker's own stack.
  static void wake(RestingWait& resting) noexcept;
  // serve_soon queues a connection that stands in no list and whose client has sent something.
  void serve_soon(Connection& connection) noexcept;
  // serve_arrived does that if the client has sent something since the connection went to rest, which is not to be lost:
  // closed over it, the kernel would reset the connection.
  [[nodiscard]] bool serve_arrived(Connection& connection) noexcept;
  // serve_waiting serves a connection that waits, and further ones behind it. By the SessionHost.
  void serve_waiting() noexcept;
  // spawn_missing spawns a fiber where connections wait, a session is free, and an earlier spawn has failed.
  void spawn_missing() noexcept;

  // grant_places gives places to handlers that wait in line for one, where there are any.
  void grant_places() noexcept;
  // await_hurry waits until a place is wanted and none is free, or for `calm`. False: the caller is cancelled.
  [[nodiscard]] bool await_hurry(std::chrono::nanoseconds calm) noexcept;

  // These are Engine's functions of the same names; resting.cpp has `rest`, serve_arrived and close_resting.
  [[nodiscard]] bool rest(Connection& connection, std::int64_t since_ns) noexcept;
  void close(Connection& connection) noexcept;
  Connection* next_or_release(Session& session) noexcept;
  void release(Session& session) noexcept;
  // lent_places.cpp has what concerns places that are offered.
  void offer(ActivePlace& place, bool keeps_buffers) noexcept;
  void lend(ActivePlace& place) noexcept;
  void reclaim(ActivePlace& place) noexcept;
  void end_handshake(Connection& connection) noexcept;
  bool may_linger(Connection& connection) noexcept;
  bool close_silent_handshake() noexcept;
  ServerGauges gauges() noexcept;

  // take_record returns a record for a new connection, or null; return_record takes one back that was never served.
  Connection* take_record() noexcept;
  void return_record(Connection& connection) noexcept;

  // lack is what somebody lacks who has waited to be served since then: a place, or memory, a stack included. Nothing: on
  // a busy machine there are places, and their turn comes.
  enum class Lack : std::uint8_t { nothing, place, memory };
  Lack lack(std::int64_t since_ns) noexcept;
  static constexpr std::int64_t kHeldUpNs = 250'000'000;  // so long one waits at most where there is a place
  // handshake_held_up tells whether a handshake waits for the end of another.
  bool handshake_held_up() noexcept;
  // starved tells whether a connection or a handler waits for a session for which memory is short.
  bool starved() noexcept;

  // at_work tells whether a fiber of the server's is left, or a worker in the midst of a wake. A handler may go on when
  // its connection is closed, and a fiber ends after its session was given back.
  bool at_work() noexcept;

  // take runs `choose` on the queues, with the lock, and returns the connection that it took out.
  template <class Choose>
  Connection* take(Choose choose) noexcept {
    Locked locked(lock_);
    return choose(queues_);
  }
  // close_each closes and counts the connections that `choose` takes out, until it returns null.
  template <class Choose>
  void close_each(Atomic<std::uint64_t>& counter, Choose choose) noexcept {
    while (Connection* const connection = take(choose)) {
      counter.fetch_add(1, std::memory_order_relaxed);
      close(*connection);
    }
  }

  // close_resting closes and counts those that have rested since then, and serves those whose clients have sent something.
  void close_resting(Atomic<std::uint64_t>& counter, std::int64_t not_after_ns) noexcept;

  // free_sessions gives the memory of unused sessions, at most so many, to the system and returns the bytes.
  // relieve does the same for all of them and, as far as `wanted` bytes need it, for handlers that wait.
  // free_surplus frees what was not needed since its last call, but for one session, and unused records.
  std::size_t free_sessions(std::size_t most) noexcept;
  std::size_t relieve(std::size_t wanted) noexcept;
  void free_surplus() noexcept;

  // open_connections is for the end, when nothing runs any more.
  std::size_t open_connections() const noexcept { return records_.taken(); }

 private:
  // enqueue moves a connection to the end of its queue and sees to it that a fiber takes it from there. `rests`: it
  // stands in a list of resting ones.
  void enqueue(Connection& connection, bool rests) noexcept;
  void spawn_standby() noexcept;

  static void tell(OfferedPlaces::Line granted) noexcept;

  // These need the lock.
  Connection* next() const noexcept { return queues_.next(gate_.may_begin()); }
  void dequeue(Connection& connection) noexcept;
  bool want_standby() noexcept;
  bool held_up() const noexcept { return queues_.has_pending() && !gate_.may_begin(); }

  Engine& engine_;
  Spinlock lock_;
  ConnectionRecords records_;
  ConnectionQueues queues_;
  SessionPool pool_;
  OfferedPlaces places_{pool_};
  HandshakeGate gate_;
  Event hurry_;
  bool standby_ = false;       // a fiber was spawned to serve and has not run yet
  bool stackless_ = false;     // no stack was left for the last one, and none is tried now
  std::size_t busy_ = 0;       // fibers that serve, and wakes that go on without the lock
  std::int64_t woken_ns_ = 0;  // with one worker: when the first was queued that waits for the standby

 public:
  ClientWaits waits;
  SessionHost host;
};

}  // namespace coir::http
