#include "http/fibers/acceptor.h"

#include <coir/detail/accounts.h>
#include <coir/memory_watch.h>

#include "http/session/coarse_clock.h"
#include "http/session/pressure_steps.h"
#include "http/session/shed.h"

namespace coir::http {

using namespace std::chrono_literals;

void Acceptor::accept_all(std::size_t number) noexcept {
  constexpr int kBurst = 32;
  TcpListener& listener = listeners_[number];
  for (int burst = 1; !engine_.stopping(); ++burst) {
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
  listener.close();
}

// admit finds a record for a new connection and puts it to rest. Its request may be there already, but to ask costs
// more than to be told.
void Acceptor::admit(TcpStream&& stream, std::size_t number) noexcept {
  TlsContextSlot* const tls = tls_[number];
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
  connection->tls = tls;
  connection->requests = 0;
  // An evicted one's has not been left yet.
  engine_.clients.leave(std::exchange(connection->client, *client));
  connection->listener = static_cast<std::uint8_t>(number);
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

std::expected<void, Error> Acceptor::add(TcpListener&& listener, TlsContextSlot* tls) noexcept {
  if (count_ == Server::kMaxListeners) return std::unexpected(Error{ErrorCode::limit});
  tls_[count_] = tls;
  listeners_[count_++] = std::move(listener);
  return {};
}

bool Acceptor::start() noexcept {
  for (std::size_t i = 0; i < count_; ++i) {
    // Kept by reference, not as a handle: the engine may outlive the runtime.
    const Fiber fiber = spawn({.name = "http accept", .stack = 8_KiB}, [this, i]() noexcept { accept_all(i); });
    fibers_[i] = fiber;
    if (!fiber.started()) return false;
  }
  return true;
}

void Acceptor::cancel() noexcept {
  for (const FiberRef& fiber : fibers_) static_cast<void>(fiber.cancel());
}

bool Acceptor::alive() const noexcept {
  for (const FiberRef& fiber : fibers_) {
    if (fiber.alive()) return true;
  }
  return false;
}

}  // namespace coir::http
