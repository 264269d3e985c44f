#include "http/concurrent/fiber_engine.h"

#include <coir/detail/accounts.h>
#include <coir/port/memory.h>
#include <netinet/in.h>

#include <memory>
#include <new>

#include "base/rounded.h"
#include "http/connection/coarse_clock.h"
#include "http/connection/stream_log.h"

namespace coir::http {
namespace {

constexpr std::size_t kLine = 64;

FiberEngine& self(Engine& engine) noexcept {
  return static_cast<FiberEngine&>(engine);
}

}  // namespace

FiberEngine* FiberEngine::create(const ServerOptions& options, Mode mode) noexcept {
  const std::size_t connections_at = rounded(sizeof(FiberEngine), kLine);
  // On a page of their own, for buffers and records are freed by whole pages.
  const std::size_t most_buffers = Dispatcher::most_buffers(options);
  const std::size_t buffers_at =
      rounded(connections_at + options.max_connections * sizeof(Connection), port::kPageBytes);
  const std::size_t numbers_at = buffers_at + most_buffers * sizeof(SessionBuffers);
  const std::size_t peers_at = rounded(numbers_at + most_buffers * sizeof(std::uint32_t), sizeof(std::uint64_t));
  const std::size_t threads_at = rounded(peers_at + options.max_connections * kPeerBytes, alignof(pthread_t));
  const std::size_t threads = mode == Mode::threads ? options.max_active : 0;
  const std::size_t bytes = rounded(threads_at + threads * sizeof(pthread_t), port::kPageBytes);
  auto* memory = static_cast<char*>(port::reserve(bytes));
  if (memory == nullptr) return nullptr;
  auto* const engine = new (memory) FiberEngine(options, mode, reinterpret_cast<Connection*>(memory + connections_at),
                                                reinterpret_cast<SessionBuffers*>(memory + buffers_at),
                                                reinterpret_cast<std::uint32_t*>(memory + numbers_at),
                                                reinterpret_cast<std::uint64_t*>(memory + peers_at),
                                                {reinterpret_cast<pthread_t*>(memory + threads_at), threads}, bytes);
  engine->evictor.attach();
  if (engine->clients.open(options)) return engine;
  destroy(engine);
  return nullptr;
}

void FiberEngine::destroy(FiberEngine* engine) noexcept {
  const std::size_t bytes = engine->mapped_bytes_;
  engine->evictor.detach();
  engine->keepers.forget();
  // Connections that were cut off have refunded nothing.
  account::connections.refund(engine->dispatcher.open_connections() * engine->connection_bytes());
  std::destroy_at(engine);
  port::release(engine, bytes);
}

// An address of another family does not fit: each call reads it from the kernel.
std::expected<Address, Error> FiberEngine::peer_of(Connection& connection) noexcept {
  std::uint64_t& known = peers_[&connection - connections_];
  // Pairs with the release below: what is known was written before.
  if (connection.peer.load(std::memory_order_acquire) == PeerState::known) {
    const sockaddr_in name{.sin_family = AF_INET,
                           .sin_port = static_cast<in_port_t>(known >> 32),
                           .sin_addr = {.s_addr = static_cast<in_addr_t>(known)},
                           .sin_zero = {}};
    return Address::from_sockaddr(reinterpret_cast<const sockaddr*>(&name), sizeof name);
  }
  const auto address = connection.stream.tcp().peer_address();
  auto state = PeerState::unknown;
  if (address && address->family() == Address::Family::ipv4 &&
      connection.peer.compare_exchange_strong(state, PeerState::written, std::memory_order_relaxed)) {
    const auto& name = *reinterpret_cast<const sockaddr_in*>(address->get());
    known = std::uint64_t{name.sin_port} << 32 | name.sin_addr.s_addr;
    connection.peer.store(PeerState::known, std::memory_order_release);
  }
  return address;
}

// From here on: each function of Engine, by the part that does it.

Engine* Engine::create(const ServerOptions& options, Mode mode) noexcept {
  return FiberEngine::create(options, mode);
}

void Engine::destroy(Engine* engine) noexcept {
  FiberEngine::destroy(&self(*engine));
}

std::expected<std::size_t, Error> Engine::add(TcpListener&& listener, TlsContextSlot* tls, std::uint8_t mark) noexcept {
  return self(*this).acceptor.add(std::move(listener), tls, mark);
}

void Engine::remove(std::size_t number) noexcept {
  self(*this).acceptor.remove(number);
}

std::expected<void, Error> Engine::start() noexcept {
  FiberEngine& engine = self(*this);
  auto started = engine.dispatcher.host.start();
  if (started && engine.reaper.start() && engine.acceptor.start()) return {};
  engine.begin_stop();
  return started ? std::unexpected(Error{ErrorCode::no_memory}) : started;
}

void Engine::begin_stop() noexcept {
  self(*this).begin_stop();
}

bool Engine::stopped() noexcept {
  return self(*this).stopped();
}

std::expected<void, Error> Engine::stop(Deadline deadline) noexcept {
  return self(*this).stop(deadline);
}

std::size_t Engine::serve_until(std::initializer_list<int> signals, std::chrono::milliseconds drain_timeout) noexcept {
  return self(*this).serve_until(signals, drain_timeout);
}

ServerGauges Engine::gauges() noexcept {
  ServerGauges now = self(*this).dispatcher.gauges();
  now.kept = keepers.kept();
  return now;
}

bool Engine::at_work() noexcept {
  return self(*this).dispatcher.at_work();
}

bool Engine::rest(Connection& connection, std::int64_t since_ns) noexcept {
  return self(*this).dispatcher.rest(connection, since_ns);
}

std::expected<Address, Error> Engine::peer_of(Connection& connection) noexcept {
  return self(*this).peer_of(connection);
}

void Engine::close(Connection& connection) noexcept {
  end_log(connection);
  self(*this).dispatcher.close(connection);
}

Connection* Engine::next_or_release(Session& session) noexcept {
  return self(*this).dispatcher.next_or_release(session);
}

void Engine::release(Session& session) noexcept {
  self(*this).dispatcher.release(session);
}

void Engine::offer(ActivePlace& place, bool keeps_buffers) noexcept {
  if (lends_places) self(*this).dispatcher.offer(place, keeps_buffers);
}

bool Engine::lend(ActivePlace& place) noexcept {
  if (lends_places) self(*this).dispatcher.lend(place);
  return lends_places;
}

void Engine::reclaim(ActivePlace& place) noexcept {
  self(*this).dispatcher.reclaim(place);
}

void Engine::serve_soon(Connection& connection) noexcept {
  self(*this).dispatcher.serve_soon(connection);
}

void Engine::end_handshake(Connection& connection) noexcept {
  self(*this).dispatcher.end_handshake(connection);
}

bool Engine::may_linger(Connection& connection) noexcept {
  return self(*this).dispatcher.may_linger(connection);
}

bool Engine::close_silent_handshake() noexcept {
  return self(*this).dispatcher.close_silent_handshake();
}

bool Engine::evict_idle() noexcept {
  return self(*this).evictor.evict_idle();
}

void Engine::begin_exchange(Connection& connection) noexcept {
  connection.since_ns = coarse_ns();
  connection.transferred = 0;
}

void Engine::begin_waiting(Connection& connection, Direction direction, Owes owes, Deadline) noexcept {
  self(*this).dispatcher.waits.begin(connection, direction, owes);
}

bool Engine::end_waiting(Connection& connection) noexcept {
  return self(*this).dispatcher.waits.end(connection);
}

bool Engine::yield_turn() noexcept {
  yield();
  return true;
}

}  // namespace coir::http
