#include <coir/http/accounts.h>
#include <coir/ledger.h>
#include <coir/memory_watch.h>
#include <coir/port/memory.h>

#include <algorithm>
#include <utility>

#include "http/fibers/fiber_engine.h"
#include "socket/kernel.h"

namespace coir::http {

std::int64_t FiberEngine::evictable_since() const noexcept {
  return coarse_ns() - std::chrono::nanoseconds(options.evict_after).count();
}

// take_evictable takes the connection that has been idle for longest out of the idle ones, to be closed or used again,
// and before any of these one whose client has owed a flight of its handshake for as long. One whose request has
// arrived and is not yet known of is served instead; `hopeful` tells that there was one.
Connection* FiberEngine::take_evictable(bool& hopeful) noexcept {
  const std::int64_t since = evictable_since();
  for (;;) {
    Connection* connection;
    {
      Locked locked(lock_);
      connection = take_handshake([&](const Connection& each) { return each.since_ns <= since; });
      if (connection == nullptr) connection = take_longest_idle(since);
    }
    if (connection == nullptr) return nullptr;
    if (!kernel::has_input(connection->stream.fd())) {
      end_handshake(*connection);
      counters.evicted.fetch_add(1, std::memory_order_relaxed);
      return connection;
    }
    hopeful = true;
    connection->stream.mark_readable();
    {
      Locked locked(lock_);
      asleep(*connection).push_back(*connection);
    }
    begin_serving(*connection);
  }
}

bool FiberEngine::evict_idle() noexcept {
  bool hopeful = false;
  Connection* const connection = take_evictable(hopeful);
  if (connection != nullptr) close(*connection);
  return connection != nullptr;
}

std::size_t FiberEngine::close_longest_idle(std::size_t wanted) noexcept {
  std::size_t freed = 0;
  bool hopeful = false;
  while (freed < wanted) {
    Connection* const connection = take_evictable(hopeful);
    if (connection == nullptr) break;
    close(*connection);
    freed += connection_bytes();
  }
  return freed;
}

// give_sessions gives back sessions that serve nobody.
std::size_t FiberEngine::give_sessions(std::size_t most) noexcept {
  std::size_t freed = 0;
  for (; most > 0; --most) {
    Session* session;
    {
      Locked locked(lock_);
      session = free_sessions_;
      if (session == nullptr) break;
      free_sessions_ = session->next_free;
      spare_count_ = std::min(spare_count_, --free_count_);
    }
    const bool given = port::give_back(session, sizeof(Session));
    Locked locked(lock_);
    if (!given) {
      session->next_free = free_sessions_;
      free_sessions_ = session;
      ++free_count_;
      break;
    }
    given_sessions_[given_count_++] = static_cast<std::uint32_t>(session - sessions_);
    account::http.refund(sizeof(Session));
    freed += sizeof(Session);
  }
  return freed;
}

// give_what_lies_idle is the reaper's part: what a crowd that has gone has needed is given back, but for one session
// and for what was needed since its last round.
void FiberEngine::give_what_lies_idle() noexcept {
  std::size_t spare;
  {
    Locked locked(lock_);
    spare = std::exchange(spare_count_, free_count_);
  }
  if (spare > 1) give_sessions(spare - 1);
  Locked locked(lock_);
  records_.give_back_pages();
}

// watch_memory is the reaper's part: others than this process take memory too, and what waits for memory is tried
// again.
void FiberEngine::watch_memory() noexcept {
  MemoryWatch::look();
  Pressure::make_room(account::connections, 0);
  bool starved;
  {
    Locked locked(lock_);
    starved = next_waiting() != nullptr && !has_session() && free_sessions_ == nullptr &&
              (given_count_ > 0 || sessions_used_ < options.max_active);
  }
  if (starved && !Pressure::make_room(account::http, sizeof(Session))) {
    Pressure::took(PressureStep::refuse);
    constexpr std::int64_t kGraceNs = 500'000'000;
    expire_waiting(coarse_ns() - kGraceNs);
  }
  Pressure::eased();
  give_what_lies_idle();
}

// await_memory holds up accepting while the machine is in danger. False: the fiber was cancelled.
bool FiberEngine::await_memory() noexcept {
  using namespace std::chrono_literals;
  if (!MemoryWatch::critical()) [[likely]]
    return true;
  Pressure::took(PressureStep::pause);
  counters.accept_pauses.fetch_add(1, std::memory_order_relaxed);
  do {
    if (!sleep(50ms)) return false;
    watch_memory();
  } while (!stopping() && (MemoryWatch::critical() || !Pressure::eased()));
  return true;
}

}  // namespace coir::http
