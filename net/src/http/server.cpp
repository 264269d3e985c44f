#include <coir/http/server.h>
#include <coir/net/stream.h>
#include <coir/program.h>
#include <coir/wait.h>

#include "http/session/engine.h"
#include "http/session/session.h"

namespace coir::http {

std::expected<Server, Error> Server::create(const ServerOptions& options) noexcept {
  constexpr std::size_t kMost = 1'000'000;
  const bool sound = options.handler != nullptr && options.max_connections > 0 && options.max_connections <= kMost &&
                     options.max_active > 0 && options.max_active <= kMost && options.max_handshakes > 0 &&
                     options.handler_stack > 0 && options.handler_stack <= 64_KiB &&
                     options.limits.max_head_bytes <= Session::kMaxHeadBytes &&
                     options.limits.max_target < Session::kScratchBytes;
  if (!kFibers && options.max_active > 1) return std::unexpected(Error{ErrorCode::unsupported});
  if (!sound) return std::unexpected(Error{ErrorCode::invalid});
  ServerOptions kept = options;
  // A time that no process sees the end of, and that nanoseconds since the boot can be added to.
  if (kept.idle_timeout == std::chrono::milliseconds(0)) kept.idle_timeout = std::chrono::hours(24 * 365 * 100);
  Engine* engine = Engine::create(kept);
  if (engine == nullptr) return std::unexpected(Error{ErrorCode::no_memory});
  return Server(engine);
}

std::size_t Server::connection_bytes(const ServerOptions& options) noexcept {
  return sizeof(Connection) + kDescriptorBytes + options.kernel_bytes_per_connection;
}

std::size_t Server::request_bytes() noexcept {
  return sizeof(Session);
}

Server::~Server() {
  if (engine_ != nullptr) Engine::destroy(engine_);
}

std::expected<void, Error> Server::add(TcpListener&& listener, TlsContextSlot* tls) noexcept {
  if (tls != nullptr && !kTls) return std::unexpected(Error{ErrorCode::unsupported});
  return engine_->add(std::move(listener), tls);
}

std::expected<void, Error> Server::start() noexcept {
  return engine_->start();
}

void Server::begin_stop() noexcept {
  engine_->begin_stop();
}

bool Server::stopped() noexcept {
  return engine_->stopped();
}

std::expected<void, Error> Server::stop(Deadline deadline) noexcept {
  return engine_->stop(deadline);
}

std::size_t Server::serve_until(std::initializer_list<int> signals, std::chrono::milliseconds drain_timeout) noexcept {
  return engine_->serve_until(signals, drain_timeout);
}

const ServerCounters& Server::counters() const noexcept {
  return engine_->counters;
}

ServerGauges Server::gauges() const noexcept {
  ServerGauges now = engine_->gauges();
  now.kept = engine_->keepers.kept();
  return now;
}

const ServerOptions& Server::options() const noexcept {
  return engine_->options;
}

}  // namespace coir::http
