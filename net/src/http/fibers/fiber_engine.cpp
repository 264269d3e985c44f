#include "http/fibers/fiber_engine.h"

#include <coir/http/accounts.h>
#include <coir/port/memory.h>
#include <time.h>

#include <algorithm>
#include <memory>
#include <new>

#include "http/session/no_room.h"

namespace coir::http {
namespace {

constexpr std::size_t kLine = 64;
// Nobody is taken for a slow client before this, however many wait: of those that owe a head, and of the others.
constexpr std::int64_t kHeadGraceNs = 100'000'000;
constexpr std::int64_t kContentGraceNs = 2'000'000'000;

constexpr std::size_t rounded(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

void FiberEngine::wake(RestingWait& record) noexcept {
  auto& connection = static_cast<Connection&>(record);
  connection.stream.mark_readable();
  static_cast<FiberEngine*>(connection.engine)->begin_serving(connection);
}

// begin_serving puts a connection that has something to say into the queue, and sees to it that a fiber takes it from
// there.
void FiberEngine::begin_serving(Connection& connection) noexcept {
  const std::int64_t now = coarse_ns();
  bool crowded;
  bool wanted;
  bool held_up;
  {
    Locked locked(lock_);
    asleep(connection).remove(connection);
    // Not before it has left the list, whose other readers hold the lock.
    connection.since_ns = now;
    (connection.tls != nullptr && !connection.shakes_hands ? hellos_ : waiting_).push_back(connection);
    crowded = !has_session();
    wanted = want_standby();
    held_up = lingering_ != 0 && handshakes_full();
  }
  if (wanted) spawn_standby();
  if (crowded) end_slow_heads();
  if (held_up) end_silent_handshake();
}

// A standby is a fiber that was spawned and has not run yet. There is one whenever connections wait and a session is
// free. When it runs it spawns the next standby if there is more to do, and then serves one connection after the other.
// So the whole harvest of a poll is served on one stack and with one session, whose memory stays hot, as long as
// nothing makes the fiber park; when it does park the standby takes over.
void FiberEngine::spawn_standby() noexcept {
  const Fiber fiber = spawn({.name = "http", .stack = 8_KiB}, [this]() noexcept { serve_waiting(); });
  if (fiber.started()) return;
  // Without a stack the connections wait; the reaper makes room and tries again.
  Locked locked(lock_);
  standby_ = false;
}

void FiberEngine::serve_waiting() noexcept {
  Connection* connection;
  Session* session = nullptr;
  bool wanted;
  {
    Locked locked(lock_);
    standby_ = false;
    connection = next_waiting();
    if (connection != nullptr) session = take_session();
    // Without memory for one it waits; the reaper tries again.
    if (session == nullptr) return;
    take_out(*connection);
    wanted = want_standby();
  }
  if (wanted) spawn_standby();
  session->serve(*connection);
}

bool FiberEngine::rest(Connection& connection) noexcept {
  if (stopping()) {
    close(connection);
    return true;
  }
  connection.stream.rest();
  connection.since_ns = coarse_ns();
  {
    // Before the record is armed, for from then on wake may run elsewhere and takes it out.
    Locked locked(lock_);
    asleep(connection).push_back(connection);
  }
  const auto slept = arm_resting_wait(connection, connection.stream.fd());
  if (slept) return true;
  {
    Locked locked(lock_);
    asleep(connection).remove(connection);
  }
  if (slept.error() == ErrorCode::busy) {
    connection.stream.mark_readable();
    return false;
  }
  // The kernel lacks what it takes to wait. Who has had no answer yet gets one.
  if (connection.requests == 0) {
    counters.refused.fetch_add(1, std::memory_order_relaxed);
    refuse_for_want_of_room(connection.stream, connection.tls != nullptr);
  }
  close(connection);
  return true;
}

void FiberEngine::close(Connection& connection) noexcept {
  connection.stream.close();
  account::connections.refund(connection_bytes());
  end_handshake(connection);
  Locked locked(lock_);
  records_.give(connection);
}

Connection* FiberEngine::next_or_release(Session& session) noexcept {
  Locked locked(lock_);
  if (Connection* connection = next_waiting()) {
    take_out(*connection);
    return connection;
  }
  give_session(session);
  return nullptr;
}

void FiberEngine::begin_exchange(Connection& connection) noexcept {
  connection.since_ns = coarse_ns();
  connection.moved = 0;
}

void FiberEngine::begin_waiting(Connection& connection, Direction direction, Owes owes, Deadline) noexcept {
  connection.eviction.store(Eviction::none, std::memory_order_relaxed);
  connection.owes = owes;
  connection.awaits = direction;
  Locked locked(lock_);
  reading_.push_back(connection);
}

bool FiberEngine::end_waiting(Connection& connection) noexcept {
  {
    Locked locked(lock_);
    if (connection.eviction.load(std::memory_order_relaxed) == Eviction::none) {
      reading_.remove(connection);
      return true;
    }
  }
  // acquire pairs with the release in end_wait: its shutdown is over, the descriptor is ours again.
  while (connection.eviction.load(std::memory_order_acquire) != Eviction::ended) yield();
  return false;
}

// end_wait wakes the fiber that waits for a client: it finds the end of the stream.
void FiberEngine::end_wait(Connection& connection) noexcept {
  ::shutdown(connection.stream.fd(), connection.awaits == Direction::readable ? SHUT_RD : SHUT_RDWR);
  // release pairs with the acquire in end_waiting.
  connection.eviction.store(Eviction::ended, std::memory_order_release);
}

// end_slow_heads frees the sessions that serve clients which owe a head, so that a few slow ones cannot hold every
// session. A byte now and then renews nothing.
void FiberEngine::end_slow_heads() noexcept {
  const std::int64_t since = coarse_ns() - kHeadGraceNs;
  for (;;) {
    Connection* slow;
    {
      Locked locked(lock_);
      slow = reading_.front();
      while (slow != nullptr && (slow->owes != Owes::head || slow->since_ns > since)) slow = slow->next;
      if (slow == nullptr) return;
      reading_.remove(*slow);
      slow->eviction.store(Eviction::running, std::memory_order_relaxed);
    }
    end_wait(*slow);
  }
}

// end_slowest_exchange frees the session of the exchange whose client has taken or sent the fewest bytes a second. What
// the kernel still holds for a client has not been taken.
void FiberEngine::end_slowest_exchange() noexcept {
  const std::int64_t now = coarse_ns();
  Connection* slowest = nullptr;
  {
    Locked locked(lock_);
    std::uint64_t least = UINT64_MAX;
    for (Connection* each = reading_.front(); each != nullptr; each = each->next) {
      const std::int64_t spent = now - each->since_ns;
      if (each->owes != Owes::content || spent < kContentGraceNs) continue;
      const std::uint64_t rate = progress(*each) / static_cast<std::uint64_t>(spent / 1'000'000);
      if (rate >= least) continue;
      least = rate;
      slowest = each;
    }
    if (slowest == nullptr) return;
    reading_.remove(*slowest);
    slowest->eviction.store(Eviction::running, std::memory_order_relaxed);
  }
  counters.gave_way.fetch_add(1, std::memory_order_relaxed);
  end_wait(*slowest);
}

// The next five need the lock.

bool FiberEngine::has_session() const noexcept {
  if (free_sessions_ != nullptr) return true;
  if (given_count_ == 0 && sessions_used_ == options.max_active) return false;
  return account::http.fits(sizeof(Session)) && Ledger::total().fits(sizeof(Session));
}

// want_standby tells whether one is missing; the caller then spawns it.
bool FiberEngine::want_standby() noexcept {
  if (standby_ || next_waiting() == nullptr || !has_session()) return false;
  standby_ = true;
  return true;
}

Session* FiberEngine::take_session() noexcept {
  Session* session = free_sessions_;
  if (session != nullptr) {
    free_sessions_ = session->next_free;
    spare_count_ = std::min(spare_count_, --free_count_);
  } else if ((given_count_ > 0 || sessions_used_ < options.max_active) && account::http.charge(sizeof(Session))) {
    const std::size_t number = given_count_ > 0 ? given_sessions_[--given_count_] : sessions_used_++;
    session = new (sessions_ + number) Session(*this);
  }
  if (session != nullptr) ++active_;
  return session;
}

void FiberEngine::give_session(Session& session) noexcept {
  session.next_free = free_sessions_;
  free_sessions_ = &session;
  ++free_count_;
  --active_;
}

Connection* FiberEngine::take_longest_idle(std::int64_t not_after_ns) noexcept {
  for (Connection* connection = idle_.front(); connection != nullptr; connection = connection->next) {
    if (connection->since_ns > not_after_ns) return nullptr;
    // One that cannot be disarmed is waking up, or not yet asleep.
    if (!disarm_resting_wait(*connection)) continue;
    idle_.remove(*connection);
    return connection;
  }
  return nullptr;
}

ServerGauges FiberEngine::gauges() noexcept {
  Locked locked(lock_);
  return {.open = records_.taken(),
          .idle = idle_.size() + securing_.size(),
          .active = active_,
          .waiting = waiting_.size() + hellos_.size()};
}

FiberEngine* FiberEngine::create(const ServerOptions& options) noexcept {
  const std::size_t connections_at = rounded(sizeof(FiberEngine), kLine);
  // On a page of their own, for whole pages of sessions and of records are given back.
  const std::size_t sessions_at =
      rounded(connections_at + options.max_connections * sizeof(Connection), port::kPageBytes);
  const std::size_t numbers_at = sessions_at + options.max_active * sizeof(Session);
  const std::size_t bytes = rounded(numbers_at + options.max_active * sizeof(std::uint32_t), port::kPageBytes);
  auto* memory = static_cast<char*>(port::reserve(bytes));
  if (memory == nullptr) return nullptr;
  auto* const engine = new (memory) FiberEngine(options, reinterpret_cast<Connection*>(memory + connections_at),
                                                reinterpret_cast<Session*>(memory + sessions_at),
                                                reinterpret_cast<std::uint32_t*>(memory + numbers_at), bytes);
  Pressure::add(engine->spare_sessions_);
  Pressure::add(engine->idle_connections_);
  return engine;
}

void FiberEngine::destroy(FiberEngine* engine) noexcept {
  const std::size_t bytes = engine->mapped_bytes_;
  Pressure::remove(engine->spare_sessions_);
  Pressure::remove(engine->idle_connections_);
  // Whoever was cut off has given nothing back.
  account::connections.refund(engine->records_.taken() * engine->connection_bytes());
  account::http.refund((engine->sessions_used_ - engine->given_count_) * sizeof(Session));
  std::destroy_at(engine);
  port::release(engine, bytes);
}

std::int64_t coarse_ns() noexcept {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return now.tv_sec * std::int64_t{1'000'000'000} + now.tv_nsec;
}

}  // namespace coir::http
