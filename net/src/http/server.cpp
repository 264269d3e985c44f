#include <coir/http/server.h>

#include "engine.h"

namespace coir::http {

using namespace std::chrono_literals;

std::expected<Server, Error> Server::create(const ServerOptions& options) noexcept {
  constexpr std::size_t kMost = 1'000'000;
  const bool sound = options.handler != nullptr && options.max_connections > 0 && options.max_connections <= kMost &&
                     options.max_active > 0 && options.max_active <= kMost &&
                     options.limits.max_head_bytes <= Session::kMaxHeadBytes &&
                     options.limits.max_target < Session::kScratchBytes;
  if (!sound) return std::unexpected(Error{ErrorCode::invalid});
  Engine* engine = Engine::create(options);
  if (engine == nullptr) return std::unexpected(Error{ErrorCode::no_memory});
  return Server(engine);
}

Server::~Server() {
  if (engine_ != nullptr) Engine::destroy(engine_);
}

std::expected<void, Error> Server::add(TcpListener&& listener) noexcept {
  return engine_->add(std::move(listener));
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
  begin_stop();
  while (!stopped()) {
    if (deadline.passed()) return std::unexpected(Error{ErrorCode::timed_out});
    if (auto slept = sleep(10ms); !slept) return slept;
  }
  return {};
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

std::expected<void, Error> Engine::add(TcpListener&& listener) noexcept {
  if (listener_count_ == Server::kMaxListeners) return std::unexpected(Error{ErrorCode::limit});
  listeners_[listener_count_++] = std::move(listener);
  return {};
}

std::expected<void, Error> Engine::start() noexcept {
  // Kept by reference, not as handles: the engine may outlive the runtime.
  const Fiber reaper = spawn({.name = "http reaper", .stack = 8_KiB}, [this]() noexcept { reap(); });
  reaper_ = reaper;
  bool started = reaper.started();
  for (std::size_t i = 0; i < listener_count_ && started; ++i) {
    const Fiber acceptor = spawn({.name = "http accept", .stack = 8_KiB},
                                 [this, &listener = listeners_[i]]() noexcept { accept_all(listener); });
    acceptors_[i] = acceptor;
    started = acceptor.started();
  }
  if (started) return {};
  begin_stop();
  return std::unexpected(Error{ErrorCode::no_memory});
}

void Engine::begin_stop() noexcept {
  stopping_.store(true, std::memory_order_relaxed);
  for (const FiberRef& acceptor : acceptors_) static_cast<void>(acceptor.cancel());
  static_cast<void>(reaper_.cancel());
  static_cast<void>(stopped());
}

bool Engine::stopped() noexcept {
  if (!stopping()) return false;
  // Those that went to sleep while stopping_ was being set are found here as well.
  close_idle(INT64_MAX, counters.stopped_idle);
  try_waiting();
  for (const FiberRef& acceptor : acceptors_) {
    if (acceptor.alive()) return false;
  }
  return !reaper_.alive() && gauges().open == 0;
}

}  // namespace coir::http
