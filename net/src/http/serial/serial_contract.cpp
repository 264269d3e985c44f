// Each function of Engine, by the part of serial_engine.h that does it.
#include <utility>

#include "http/connection/coarse_clock.h"
#include "http/connection/stream_log.h"
#include "http/serial/serial_engine.h"

namespace coir::http {
namespace {

SerialEngine& self(Engine& engine) noexcept {
  return static_cast<SerialEngine&>(engine);
}

}  // namespace

Engine* Engine::create(const ServerOptions& options, Mode) noexcept {
  return SerialEngine::create(options);
}

void Engine::destroy(Engine* engine) noexcept {
  SerialEngine::destroy(&self(*engine));
}

std::expected<std::size_t, Error> Engine::add(TcpListener&& listener, TlsContextSlot* tls, std::uint8_t mark) noexcept {
  return self(*this).add(std::move(listener), tls, mark);
}

void Engine::remove(std::size_t number) noexcept {
  self(*this).remove(number);
}

std::expected<void, Error> Engine::start() noexcept {
  return {};
}

void Engine::begin_stop() noexcept {
  self(*this).begin_stop();
}

bool Engine::stopped() noexcept {
  return self(*this).stopped();
}

std::expected<void, Error> Engine::stop(Deadline) noexcept {
  return self(*this).stop();
}

std::size_t Engine::serve_until(std::initializer_list<int> signals, std::chrono::milliseconds drain_timeout) noexcept {
  return self(*this).loop.serve_until(signals, drain_timeout);
}

ServerGauges Engine::gauges() noexcept {
  return self(*this).gauges();
}

bool Engine::at_work() noexcept {
  return self(*this).gauges().active != 0;
}

void Engine::close_waiting(Keeper& keeper) noexcept {
  ConnectionList& ready = self(*this).ready;
  for (Connection* each = ready.front(); each != nullptr;) {
    Connection& connection = *std::exchange(each, each->next);
    if (!connection.kept || connection.keeper != &keeper) continue;
    ready.remove(connection);
    keeper.farewell(connection);
    keeper.close(connection);
  }
}

void Engine::serve_soon(Connection& connection) noexcept {
  self(*this).ready.push_back(connection);
}

bool Engine::rest(Connection& connection, std::int64_t since_ns) noexcept {
  return self(*this).rest(connection, since_ns);
}

std::expected<Address, Error> Engine::peer_of(Connection& connection) noexcept {
  return connection.stream.tcp().peer_address();
}

void Engine::close(Connection& connection) noexcept {
  end_log(connection);
  self(*this).close(connection);
}

// The loop of serve_until finds who comes next.
Connection* Engine::next_or_release(Session&) noexcept {
  return nullptr;
}

void Engine::end_handshake(Connection&) noexcept {}

// A connection that lingers holds its record, and nothing of the memory of handshakes.
bool Engine::may_linger(Connection&) noexcept {
  return true;
}

bool Engine::close_silent_handshake() noexcept {
  return self(*this).close_silent_handshake();
}

bool Engine::evict_idle() noexcept {
  return self(*this).evict_idle();
}

void Engine::begin_exchange(Connection& connection) noexcept {
  connection.since_ns = coarse_ns();
  connection.transferred = 0;
}

void Engine::begin_waiting(Connection& connection, Direction direction, Owes owes, Deadline deadline) noexcept {
  self(*this).loop.begin_waiting(connection, direction, owes, deadline);
}

bool Engine::end_waiting(Connection&) noexcept {
  return self(*this).loop.end_waiting();
}

bool Engine::yield_turn() noexcept {
  return self(*this).loop.yield_turn();
}

}  // namespace coir::http
