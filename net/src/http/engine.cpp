#include "http/session/engine.h"

#include <coir/config.h>

#if COIR_NO_ASYNC
#include "http/serial/serial_engine.h"
#else
#include "http/fibers/fiber_engine.h"
#endif

// Each function of Engine is the chosen engine's of the same name.

namespace coir::http {

namespace {

#if COIR_NO_ASYNC
using Chosen = SerialEngine;
#else
using Chosen = FiberEngine;
#endif

Chosen& self(Engine& engine) noexcept {
  return static_cast<Chosen&>(engine);
}

}  // namespace

Engine* Engine::create(const ServerOptions& options) noexcept {
  return Chosen::create(options);
}

void Engine::destroy(Engine* engine) noexcept {
  Chosen::destroy(&self(*engine));
}

std::expected<void, Error> Engine::add(TcpListener&& listener, TlsContextSlot* tls) noexcept {
  return self(*this).add(std::move(listener), tls);
}

std::expected<void, Error> Engine::start() noexcept {
  return self(*this).start();
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
  return self(*this).gauges();
}

bool Engine::rest(Connection& connection) noexcept {
  return self(*this).rest(connection);
}

void Engine::close(Connection& connection) noexcept {
  self(*this).close(connection);
}

Connection* Engine::next_or_release(Session& session) noexcept {
  return self(*this).next_or_release(session);
}

void Engine::end_handshake(Connection& connection) noexcept {
  self(*this).end_handshake(connection);
}

bool Engine::may_linger(Connection& connection) noexcept {
  return self(*this).may_linger(connection);
}

bool Engine::evict_idle() noexcept {
  return self(*this).evict_idle();
}

bool Engine::end_silent_handshake() noexcept {
  return self(*this).end_silent_handshake();
}

void Engine::begin_exchange(Connection& connection) noexcept {
  self(*this).begin_exchange(connection);
}

void Engine::begin_waiting(Connection& connection, Direction direction, Owes owes, Deadline deadline) noexcept {
  self(*this).begin_waiting(connection, direction, owes, deadline);
}

bool Engine::end_waiting(Connection& connection) noexcept {
  return self(*this).end_waiting(connection);
}

bool Engine::yield_turn() noexcept {
  return self(*this).yield_turn();
}

bool Engine::stopping() noexcept {
  return self(*this).stopping();
}

}  // namespace coir::http
