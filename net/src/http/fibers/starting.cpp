#include "http/fibers/fiber_engine.h"

namespace coir::http {

using namespace std::chrono_literals;

std::expected<void, Error> FiberEngine::add(TcpListener&& listener, TlsContextSlot* tls) noexcept {
  if (listener_count_ == Server::kMaxListeners) return std::unexpected(Error{ErrorCode::limit});
  tls_[listener_count_] = tls;
  listeners_[listener_count_++] = std::move(listener);
  return {};
}

std::expected<void, Error> FiberEngine::start() noexcept {
  // Kept by reference, not as handles: the engine may outlive the runtime.
  const Fiber reaper = spawn({.name = "http reaper", .stack = 8_KiB}, [this]() noexcept { reap(); });
  reaper_ = reaper;
  bool started = reaper.started();
  for (std::size_t i = 0; i < listener_count_ && started; ++i) {
    const Fiber acceptor = spawn({.name = "http accept", .stack = 8_KiB}, [this, i]() noexcept { accept_all(i); });
    acceptors_[i] = acceptor;
    started = acceptor.started();
  }
  if (started) return {};
  begin_stop();
  return std::unexpected(Error{ErrorCode::no_memory});
}

void FiberEngine::begin_stop() noexcept {
  stopping_.store(true, std::memory_order_relaxed);
  for (const FiberRef& acceptor : acceptors_) static_cast<void>(acceptor.cancel());
  static_cast<void>(reaper_.cancel());
  static_cast<void>(stopped());
}

std::expected<void, Error> FiberEngine::stop(Deadline deadline) noexcept {
  begin_stop();
  while (!stopped()) {
    if (deadline.passed()) return std::unexpected(Error{ErrorCode::timed_out});
    if (auto slept = sleep(10ms); !slept) return slept;
  }
  return {};
}

bool FiberEngine::stopped() noexcept {
  if (!stopping()) return false;
  // Those that went to sleep while stopping_ was being set are found here as well.
  close_all_asleep();
  try_waiting();
  for (const FiberRef& acceptor : acceptors_) {
    if (acceptor.alive()) return false;
  }
  return !reaper_.alive() && gauges().open == 0;
}

}  // namespace coir::http
