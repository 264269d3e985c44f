#include <coir/http/accounts.h>
#include <coir/memory_watch.h>

#include "http/fibers/fiber_engine.h"
#include "http/session/no_room.h"
#include "socket/kernel.h"

namespace coir::http {
namespace {

using namespace std::chrono_literals;

}  // namespace

void FiberEngine::accept_all(std::size_t number) noexcept {
  constexpr int kBurst = 32;
  TcpListener& listener = listeners_[number];
  for (int burst = 1; !stopping(); ++burst) {
    if (!await_memory()) break;
    auto accepted = listener.accept();
    if (accepted) {
      admit(std::move(*accepted), number);
      // A flood of connections must not keep this worker from serving those it has.
      if (burst % kBurst == 0) {
        MemoryWatch::look();
        yield();
      }
      continue;
    }
    if (accepted.error() == ErrorCode::cancelled || accepted.error() == ErrorCode::closed) break;
    if (kernel_is_short(accepted.error())) {
      counters.accept_pauses.fetch_add(1, std::memory_order_relaxed);
      // It is a descriptor that is wanted, so that a free record is no help.
      bool hopeful = false;
      if (Connection* victim = take_evictable(hopeful)) {
        close(*victim);
        continue;
      }
      if (hopeful && sleep(1ms)) continue;
    }
    if (!sleep(50ms)) break;
  }
  listener.close();
}

void FiberEngine::admit(TcpStream&& stream, std::size_t number) noexcept {
  TlsContextSlot* const tls = tls_[number];
  counters.accepted.fetch_add(1, std::memory_order_relaxed);
  Connection* connection;
  {
    Locked locked(lock_);
    connection = records_.take();
  }
  if (connection == nullptr) {
    connection = evict_one();
  } else if (!Pressure::charge(account::connections, connection_bytes())) {
    Pressure::took(PressureStep::refuse);
    Locked locked(lock_);
    records_.give(*connection);
    connection = nullptr;
  }
  if (connection == nullptr) {
    counters.refused.fetch_add(1, std::memory_order_relaxed);
    Stream refused(std::move(stream));
    return refuse_for_want_of_room(refused, tls != nullptr);
  }
  // Closes the evicted connection's socket, if the record had one.
  connection->stream = std::move(stream);
  connection->wake = wake;
  connection->engine = this;
  connection->tls = tls;
  connection->requests = 0;
  connection->listener = static_cast<std::uint8_t>(number);
  // The request may be there already, but asking costs more than being told.
  if (!rest(*connection)) {
    {
      Locked locked(lock_);
      asleep(*connection).push_back(*connection);
    }
    begin_serving(*connection);
  }
}

// evict_one makes a record free for a newcomer, and waits a little where there is hope for one.
Connection* FiberEngine::evict_one() noexcept {
  // Milliseconds: on a busy machine it takes some until those that have asked are served.
  constexpr int kTries = 100;
  constexpr std::int64_t kFullForNs = 100'000'000;
  // Those in service may be done in a moment, unless that was hoped for in vain just now: a flood is refused at once.
  bool hopeful = coarse_ns() - full_at_ns_.load(std::memory_order_relaxed) > kFullForNs;
  for (int tries = 0; tries < kTries; ++tries) {
    if (Connection* const evicted = take_evictable(hopeful)) return evicted;
    if (!hopeful || !sleep(1ms)) break;
    Connection* released;
    {
      Locked locked(lock_);
      released = records_.take();
    }
    if (released == nullptr) continue;
    if (account::connections.charge(connection_bytes())) return released;
    Locked locked(lock_);
    records_.give(*released);
    break;
  }
  full_at_ns_.store(coarse_ns(), std::memory_order_relaxed);
  return nullptr;
}

}  // namespace coir::http
