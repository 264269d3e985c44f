#include "http/concurrent/dispatcher.h"

#include <coir/detail/accounts.h>
#include <coir/fiber.h>

#include "http/concurrent/fiber_engine.h"
#include "http/connection/coarse_clock.h"
#include "http/connection/half_head.h"
#include "http/session/session.h"

namespace coir::http {

void Dispatcher::wake(RestingWait& resting) noexcept {
  auto& connection = static_cast<Connection&>(resting);
  if (connection.kept) {
    connection.keeper->leave(connection);
    return static_cast<FiberEngine*>(connection.keeper->engine())->dispatcher.enqueue(connection, false);
  }
  Dispatcher& self = static_cast<FiberEngine*>(connection.engine)->dispatcher;
  connection.stream.mark_readable();
  self.enqueue(connection, true);
}

void Dispatcher::serve_soon(Connection& connection) noexcept {
  enqueue(connection, false);
}

void Dispatcher::enqueue(Connection& connection, bool rests) noexcept {
  // With one worker those that one poll has woken share a reading of the clock: no fiber of ours has run since.
  if constexpr (!kManyWorkers) {
    if (!standby_) woken_ns_ = coarse_ns();
  }
  const std::int64_t now = kManyWorkers ? coarse_ns() : woken_ns_;
  bool all_taken;
  bool wanted;
  bool held_up_by_failed;
  {
    Locked locked(lock_);
    if (rests) queues_.unrest(connection);
    // Not before it has left that list, whose other readers hold the lock.
    connection.since_ns = now;
    queues_.enqueue(connection);
    all_taken = !places_.has_place(now);
    wanted = want_standby();
    held_up_by_failed = gate_.any_lingers() && held_up();
    if (all_taken || held_up_by_failed) ++busy_;
  }
  if (wanted) spawn_standby();
  if (!all_taken && !held_up_by_failed) return;
  if (all_taken) {
    hurry_.set();
    if (!engine_.lends_places) waits.end_slow_heads();
  }
  if (held_up_by_failed) close_silent_handshake();
  Locked locked(lock_);
  --busy_;
}

// A standby is a fiber that was spawned and has not run yet. There is one whenever connections wait and a session is
// free. When it runs it spawns the next standby if there is more to do, and then serves one connection after the other.
// So all connections that one poll has woken are served on one stack and with one session, whose memory stays hot, as
// long as nothing makes the fiber park. When it parks the standby takes over.
void Dispatcher::spawn_standby() noexcept {
  if (host.serve_waiting()) return;
  // Without a stack the connections wait; the reaper makes room and tries again.
  Locked locked(lock_);
  standby_ = false;
  stackless_ = true;
}

void Dispatcher::spawn_missing() noexcept {
  bool wanted;
  {
    Locked locked(lock_);
    wanted = want_standby();
  }
  if (wanted) spawn_standby();
}

void Dispatcher::serve_waiting() noexcept {
  Connection* connection;
  SessionBuffers* buffers = nullptr;
  bool wanted;
  {
    Locked locked(lock_);
    standby_ = false;
    connection = next();
    if (connection != nullptr) buffers = pool_.take();
    // Without memory for a session, or where a handler has come back for the place, the connection waits; the next place
    // that is free is for it, and the reaper tries again.
    if (buffers == nullptr) return;
    dequeue(*connection);
    wanted = want_standby();
    ++busy_;
  }
  if (wanted) spawn_standby();
  {
    HandlerWatch watch(engine_);
    Session session(engine_, *buffers);
    session.serve(*connection, watch);
  }
  // The server may be gone once this is unlocked.
  Locked locked(lock_);
  --busy_;
}

Connection* Dispatcher::next_or_release(Session& session) noexcept {
  OfferedPlaces::Line granted;
  {
    Locked locked(lock_);
    if (!places_.any_in_line()) {
      Connection* const connection = next();
      if (connection != nullptr) {
        dequeue(*connection);
      } else {
        places_.take_back(session);
      }
      return connection;
    }
    places_.take_back(session);
    granted = places_.grant(coarse_ns());
  }
  tell(granted);
  spawn_missing();
  return nullptr;
}

void Dispatcher::release(Session& session) noexcept {
  {
    Locked locked(lock_);
    places_.take_back(session);
  }
  grant_places();
}

void Dispatcher::dequeue(Connection& connection) noexcept {
  queues_.dequeue(connection);
  if (ConnectionQueues::begins_handshake(connection)) gate_.begin(connection);
}

// want_standby tells whether a standby is missing; the caller then spawns it.
bool Dispatcher::want_standby() noexcept {
  if (standby_ || next() == nullptr || places_.any_in_line() || !places_.has_place(coarse_ns())) return false;
  standby_ = true;
  stackless_ = false;
  return true;
}

void Dispatcher::close(Connection& connection) noexcept {
  HalfHead::drop(connection);
  connection.stream.close();
  engine_.clients.leave(std::exchange(connection.client, 0));
  account::connections.refund(Server::connection_bytes(engine_.options));
  end_handshake(connection);
  Locked locked(lock_);
  records_.give(connection);
}

void Dispatcher::end_handshake(Connection& connection) noexcept {
  // Only the connection's owner writes the mark.
  if (!connection.in_handshake) return;
  bool wanted;
  {
    Locked locked(lock_);
    gate_.end(connection);
    wanted = want_standby();
  }
  if (wanted) spawn_standby();
}

bool Dispatcher::may_linger(Connection& connection) noexcept {
  Locked locked(lock_);
  gate_.linger(connection);
  return !held_up();
}

bool Dispatcher::close_silent_handshake() noexcept {
  const std::int64_t since = coarse_ns() - kHandshakeSilenceNs;
  Connection* const connection = take([&](ConnectionQueues& queues) {
    return queues.take_handshake(
        [&](const Connection& each) { return each.in_handshake && (each.lingers || each.since_ns <= since); });
  });
  if (connection == nullptr) return false;
  engine_.counters.evicted.fetch_add(1, std::memory_order_relaxed);
  close(*connection);
  return true;
}

Connection* Dispatcher::take_record() noexcept {
  Locked locked(lock_);
  return records_.take();
}

void Dispatcher::return_record(Connection& connection) noexcept {
  Locked locked(lock_);
  records_.give(connection);
}

bool Dispatcher::handshake_held_up() noexcept {
  Locked locked(lock_);
  return held_up();
}

bool Dispatcher::at_work() noexcept {
  Locked locked(lock_);
  return standby_ || busy_ != 0;
}

bool Dispatcher::starved() noexcept {
  Locked locked(lock_);
  return (next() != nullptr || places_.any_in_line()) && pool_.starved();
}

ServerGauges Dispatcher::gauges() noexcept {
  Locked locked(lock_);
  return {.open = records_.taken(),
          .idle = queues_.resting(),
          .active = pool_.taken(),
          .waiting = queues_.waiting() + places_.in_line(),
          .kept = 0};
}

std::size_t Dispatcher::free_sessions(std::size_t most) noexcept {
  std::size_t freed = 0;
  for (; most > 0; --most) {
    SessionBuffers* buffers;
    {
      Locked locked(lock_);
      if (places_.needs_spare() && pool_.unused() <= 1) break;
      buffers = pool_.take_unused();
    }
    if (buffers == nullptr) break;
    const bool free = SessionPool::free(*buffers);
    Locked locked(lock_);
    if (!free) {
      pool_.keep(*buffers);
      break;
    }
    pool_.note_freed(*buffers);
    freed += sizeof(SessionBuffers);
  }
  return freed;
}

std::size_t Dispatcher::relieve(std::size_t wanted) noexcept {
  std::size_t freed = free_sessions(SIZE_MAX);
  while (freed < wanted) {
    {
      Locked locked(lock_);
      // The next step would close connections.
      if (!places_.free_buffers()) break;
    }
    freed += free_sessions(SIZE_MAX);
  }
  return freed;
}

void Dispatcher::free_surplus() noexcept {
  std::size_t surplus;
  std::span<Connection> aside;
  {
    Locked locked(lock_);
    surplus = pool_.surplus();
    aside = records_.set_aside();
  }
  if (surplus > 1) free_sessions(surplus - 1);
  if (aside.empty()) return;
  const bool freed = ConnectionRecords::free(aside);
  Locked locked(lock_);
  records_.bring_back(aside, freed);
}

}  // namespace coir::http
