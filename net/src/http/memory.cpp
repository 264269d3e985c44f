#include <coir/ledger.h>
#include <coir/memory_watch.h>
#include <coir/port/memory.h>

#include "../net/kernel.h"
#include "engine.h"

namespace coir::http {

std::int64_t Engine::evictable_since() const noexcept {
  return coarse_ns() - std::chrono::nanoseconds(options.evict_after).count();
}

// take_evictable takes the connection that has been idle for longest out of the idle ones, to be closed or used again.
// One whose request has arrived and is not yet known of is served instead; `hopeful` tells that there was one.
Connection* Engine::take_evictable(bool& hopeful) noexcept {
  const std::int64_t since = evictable_since();
  for (;;) {
    Connection* connection;
    {
      Locked locked(lock_);
      connection = take_longest_idle(since);
    }
    if (connection == nullptr) return nullptr;
    if (!kernel::has_input(connection->stream.fd())) {
      counters.evicted.fetch_add(1, std::memory_order_relaxed);
      return connection;
    }
    hopeful = true;
    connection->stream.mark_readable();
    {
      Locked locked(lock_);
      idle_.push_back(*connection);
    }
    begin_serving(*connection);
  }
}

std::size_t Engine::close_longest_idle(std::size_t wanted) noexcept {
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

// give_sessions gives back the buffers of sessions that serve nobody.
std::size_t Engine::give_sessions() noexcept {
  Session* spare;
  {
    Locked locked(lock_);
    spare = std::exchange(free_sessions_, nullptr);
  }
  std::size_t freed = 0;
  while (spare != nullptr) {
    Session* const session = spare;
    spare = session->next_free;
    const bool given = port::give_back(session->buffers(), Session::kBufferBytes);
    Locked locked(lock_);
    if (!given) {
      session->next_free = free_sessions_;
      free_sessions_ = session;
      continue;
    }
    account::http.refund(Session::kBufferBytes);
    freed += Session::kBufferBytes;
    session->next_free = given_sessions_;
    given_sessions_ = session;
    ++given_count_;
  }
  return freed;
}

// watch_memory is the reaper's part: others than this process take memory too, and what waits for memory is tried
// again.
void Engine::watch_memory() noexcept {
  MemoryWatch::look();
  Pressure::make_room(account::connections, 0);
  bool starved;
  {
    Locked locked(lock_);
    starved = waiting_.front() != nullptr && !has_session() && free_sessions_ == nullptr &&
              (given_sessions_ != nullptr || sessions_used_ < options.max_active);
  }
  if (starved && !Pressure::make_room(account::http, sizeof(Session))) {
    Pressure::took(PressureStep::refuse);
    constexpr std::int64_t kGraceNs = 500'000'000;
    expire_waiting(coarse_ns() - kGraceNs);
  }
  Pressure::eased();
}

// await_memory holds up accepting while the machine is in danger. False: the fiber was cancelled.
bool Engine::await_memory() noexcept {
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
