#include <coir/detail/fatal.h>
#include <coir/http/server.h>
#include <coir/net/stream.h>
#include <coir/program.h>
#include <coir/wait.h>

#include "http/session/engine.h"
#include "http/session/session.h"

namespace coir::http {
namespace {

// sound_options returns the options as an engine takes them. Error: invalid.
std::expected<ServerOptions, Error> sound_options(const ServerOptions& options) noexcept {
  constexpr std::size_t kMost = 1'000'000;
  const bool sound = options.handler && options.max_connections > 0 && options.max_connections <= kMost &&
                     options.max_active > 0 && options.max_active <= kMost && options.max_handshakes > 0 &&
                     options.max_requests_per_client <= kMost && options.handler_stack > 0 &&
                     options.handler_stack <= 64_KiB && options.limits.max_head_bytes <= Session::kMaxHeadBytes &&
                     options.limits.max_target < SessionBuffers::kScratchBytes;
  if (!sound) return std::unexpected(Error{ErrorCode::invalid});
  ServerOptions kept = options;
  // A time that no process sees the end of, and that nanoseconds since the boot can be added to.
  if (kept.idle_timeout == std::chrono::milliseconds(0)) kept.idle_timeout = std::chrono::hours(24 * 365 * 100);
  return kept;
}

}  // namespace

std::expected<Server, Error> Server::create(const ServerOptions& options, Mode mode) noexcept {
  constexpr std::size_t kMostThreads = 4096;
  const bool serial = mode == Mode::serial;
  if ((serial ? !kFibers && options.max_active > 1 : !kFibers) || (mode == Mode::threads && !kManyWorkers))
    return std::unexpected(Error{ErrorCode::unsupported});
  auto kept = sound_options(options);
  if (!kept) return std::unexpected(kept.error());
  if (serial) kept->max_active = 1;
  if (mode == Mode::threads && kept->max_active > kMostThreads) return std::unexpected(Error{ErrorCode::invalid});
  Engine* engine = Engine::create(*kept, mode);
  if (engine == nullptr) return std::unexpected(Error{ErrorCode::no_memory});
  return Server(engine);
}

std::size_t Server::connection_bytes(const ServerOptions& options) noexcept {
  return sizeof(Connection) + kPeerBytes + kDescriptorBytes + options.kernel_bytes_per_connection;
}

std::size_t Server::request_bytes() noexcept {
  return sizeof(SessionBuffers);
}

Server::~Server() {
  if (engine_ == nullptr) return;
  if (engine_->at_work()) {
    coir::detail::fatal("a server is destroyed while handlers of its run: stop it, or let it outlive the run");
  }
  Engine::destroy(engine_);
}

std::expected<std::size_t, Error> Server::add(TcpListener&& listener, TlsContextSlot* tls, std::uint8_t mark) noexcept {
  if (tls != nullptr && !kTls) return std::unexpected(Error{ErrorCode::unsupported});
  if (engine_->stopping()) return std::unexpected(Error{ErrorCode::closed});
  auto added = engine_->add(std::move(listener), tls, mark);
  if (added && tls != nullptr) engine_->take_context(tls);
  return added;
}

void Server::remove(std::size_t number) noexcept {
  engine_->remove(number);
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
  return engine_->gauges();
}

const ServerOptions& Server::options() const noexcept {
  return engine_->options;
}

}  // namespace coir::http
