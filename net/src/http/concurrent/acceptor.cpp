#include "http/concurrent/acceptor.h"

#include <coir/cancel_scope.h>
#include <coir/config.h>
#include <coir/detail/accounts.h>
#include <coir/memory_watch.h>
#if COIR_TLS
#include <coir/tls.h>
#endif

#include <algorithm>
#include <iterator>

#include "http/connection/coarse_clock.h"
#include "http/connection/pressure_steps.h"
#include "http/connection/shed.h"

namespace coir::http {

using namespace std::chrono_literals;

void Acceptor::accept_all(Listening& from) noexcept {
  constexpr int kBurst = 32;
  TcpListener& listener = from.listener;
#if COIR_TLS
  // Until there is a context the kernel holds the clients.
  const bool may_accept = from.tls == nullptr || from.tls->await();
#else
  constexpr bool may_accept = true;
#endif
  for (int burst = 1; may_accept && !engine_.stopping(); ++burst) {
    if (!await_memory()) break;
    auto accepted = listener.accept();
    if (accepted) {
      admit(std::move(*accepted), from);
      // A flood of connections must not keep this worker from serving those it has.
      if (burst % kBurst == 0) {
        MemoryWatch::look();
        yield();
      }
      continue;
    }
    if (accepted.error() == ErrorCode::cancelled || accepted.error() == ErrorCode::closed) break;
    if (kernel_is_short(accepted.error())) {
      engine_.counters.accept_pauses.fetch_add(1, std::memory_order_relaxed);
      // A descriptor is wanted, so that a free record is no help.
      bool one_ends_soon = false;
      if (Connection* evicted = evictor_.take_evictable(one_ends_soon)) {
        dispatcher_.close(*evicted);
        continue;
      }
      if (one_ends_soon && sleep(1ms)) continue;
    }
    if (!sleep(50ms)) break;
  }
  // A handshake is not begun any more.
  if (engine_.stopping() && from.tls == nullptr) let_in(from);
  listener.close();
}

// let_in accepts the clients that wait at a listener already: closed with it, the kernel would reset their connections.
void Acceptor::let_in(Listening& from) noexcept {
  constexpr int kMost = 256;
  for (int each = 0; each < kMost && !MemoryWatch::critical(); ++each) {
    auto accepted = from.listener.accept(Deadline::now());
    if (!accepted) return;
    admit(std::move(*accepted), from);
  }
}

// admit finds a record for a new connection and puts it to rest. Its request may be there already, but to ask costs
// more than to be told.
void Acceptor::admit(TcpStream&& stream, const Listening& from) noexcept {
  TlsContextSlot* const tls = from.tls;
  engine_.counters.accepted.fetch_add(1, std::memory_order_relaxed);
  const auto client = engine_.clients.enter(stream);
  if (!client) {
    engine_.counters.limited_connections.fetch_add(1, std::memory_order_relaxed);
    Stream refused(std::move(stream));
    return shed(refused, tls != nullptr, Shed::one_client);
  }
  Connection* connection = dispatcher_.take_record();
  if (connection == nullptr) {
    connection = evictor_.replace_one();
  } else if (!Pressure::charge(account::connections, Server::connection_bytes(engine_.options))) {
    Pressure::took(pressure::shed);
    dispatcher_.return_record(*connection);
    connection = nullptr;
  }
  if (connection == nullptr) {
    engine_.clients.leave(*client);
    engine_.counters.refused.fetch_add(1, std::memory_order_relaxed);
    Stream refused(std::move(stream));
    return shed(refused, tls != nullptr);
  }
  // Closes the evicted connection's socket, if the record had one.
  connection->stream = std::move(stream);
  connection->wake = Dispatcher::wake;
  connection->engine = &engine_;
  connection->kept = false;
  connection->peer.store(PeerState::unknown, std::memory_order_relaxed);
  connection->tls = tls;
  connection->requests = 0;
  // An evicted one's has not been left yet.
  engine_.clients.leave(std::exchange(connection->client, *client));
  connection->listener = from.mark;
  if (!dispatcher_.rest(*connection, coarse_ns())) dispatcher_.serve_soon(*connection);
}

// await_memory holds up accepting while the machine is in danger. False: the fiber was cancelled.
bool Acceptor::await_memory() noexcept {
  if (!MemoryWatch::critical()) [[likely]]
    return true;
  Pressure::took(pressure::pause);
  engine_.counters.accept_pauses.fetch_add(1, std::memory_order_relaxed);
  do {
    if (!sleep(50ms)) return false;
    evictor_.relieve();
  } while (!engine_.stopping() && (MemoryWatch::critical() || !Pressure::eased()));
  return true;
}

std::expected<std::size_t, Error> Acceptor::add(TcpListener&& listener, TlsContextSlot* tls,
                                                std::uint8_t mark) noexcept {
  Listening* const free = std::ranges::find_if(listening_, [](const Listening& each) {
    return !each.listener.is_open() && (each.ended.is_set() || !each.fiber.alive());
  });
  if (free == std::end(listening_)) return std::unexpected(Error{ErrorCode::limit});
  free->listener = std::move(listener);
  free->tls = tls;
  free->mark = mark;
  if (started_ && !start(*free)) {
    free->listener.close();
    return std::unexpected(Error{ErrorCode::no_memory});
  }
  return static_cast<std::size_t>(free - listening_);
}

void Acceptor::remove(std::size_t number) noexcept {
  Listening& gone = listening_[number];
#if COIR_TLS
  const bool served = started_ && (gone.tls == nullptr || gone.tls->current());
#else
  const bool served = started_;
#endif
  if (served) let_in(gone);
  gone.listener.close();
  static_cast<void>(gone.fiber.cancel());
  // Not ended by the caller's cancellation: the next listener takes this place.
  const Shield shield(Deadline::never());
  if (gone.fiber.alive()) static_cast<void>(gone.ended.wait());
}

bool Acceptor::start(Listening& listening) noexcept {
  listening.ended.reset();
  // Kept by reference, not as a handle: the engine may outlive the runtime.
  const Fiber fiber = spawn({.name = "http accept", .stack = 8_KiB, .detached = true}, [this, &listening]() noexcept {
    accept_all(listening);
    listening.ended.set();
  });
  listening.fiber = fiber;
  return fiber.started();
}

bool Acceptor::start() noexcept {
  started_ = true;
  return std::ranges::all_of(listening_, [this](Listening& each) { return !each.listener.is_open() || start(each); });
}

void Acceptor::cancel() noexcept {
  for (const Listening& each : listening_) static_cast<void>(each.fiber.cancel());
}

bool Acceptor::alive() const noexcept {
  return std::ranges::any_of(listening_, [](const Listening& each) { return each.fiber.alive(); });
}

}  // namespace coir::http
