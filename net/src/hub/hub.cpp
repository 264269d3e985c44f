#include "hub/hub.h"

#include <coir/detail/fatal.h>
#include <coir/http/exchange.h>

#include "http/session/engine.h"
#include "stream/event_encoder.h"

#if !COIR_NO_ASYNC
#include <coir/cancel_scope.h>
#include <coir/fiber.h>

#include <algorithm>
#endif

namespace coir::http {

Keeper::Place Hub::admit(Exchange& exchange, std::size_t most) noexcept {
  if (!is_ready(exchange)) return {};
  // Behind is_ready: a hub without members may still change to another server.
  Place place = reserve(most);
  if (!place) exchange.respond_status(503, kComeAgain);
  return place;
}

bool Hub::is_ready(Exchange& exchange) noexcept {
  // The server has to know of the hub before the hub's fiber runs, which the server ends when it stops.
  if (attach(exchange) && start()) return true;
  exchange.respond_status(503, kComeAgain);
  return false;
}

bool Hub::send_keep_alive(Connection& connection) noexcept {
  const iovec comment = {const_cast<char*>(kKeepAlive.data()), kKeepAlive.size()};
  const auto sent = connection.stream.write_some({&comment, 1}, Deadline::now());
  return sent && *sent == kKeepAlive.size();
}

void Hub::tick() noexcept {
  work(false);
  put_off();
}

#if COIR_NO_ASYNC

bool Hub::start() noexcept {
  if (due_ == Deadline::never()) put_off();
  return true;
}

void Hub::news() noexcept {
  if (engine() == nullptr) return;
  put_off();
  work(true);
}

void Hub::stopping() noexcept {}

bool Hub::stopped() noexcept {
  return true;
}

void Hub::leave_all() noexcept {
  if (engine() == nullptr) return;
  leaves_.store(true, std::memory_order_relaxed);
  close_resting();
  engine()->close_waiting(*this);
  engine()->keepers.remove(*this);
}

#else

// start spawns the fiber for the first member. False: there is no stack for it.
bool Hub::start() noexcept {
  // If two begin at the same time, one of them spawns.
  if (runs_.load(std::memory_order_acquire) || runs_.exchange(true, std::memory_order_acq_rel)) return true;
  stops_.store(false, std::memory_order_relaxed);
  const std::size_t stack = calls_program_ ? std::max(engine()->options.handler_stack, 8_KiB) : 8_KiB;
  const Fiber fiber = spawn({.name = name_, .stack = stack, .detached = true}, [this]() noexcept { run(); });
  if (!fiber.started()) runs_.store(false, std::memory_order_release);
  return fiber.started();
}

void Hub::run() noexcept {
  put_off();
  while (!stops_.load(std::memory_order_acquire)) {
    const auto told = news_.wait(due_);
    if (!told && !told.error().is_late()) break;
    // News from here on set it again.
    news_.reset();
    if (stops_.load(std::memory_order_acquire)) break;
    work(told.has_value());
    put_off();
  }
  // release pairs with the acquire in stopped: nothing of the hub is touched from here on.
  runs_.store(false, std::memory_order_release);
}

void Hub::news() noexcept {
  news_.set();
}

void Hub::stopping() noexcept {
  stops_.store(true, std::memory_order_release);
  news_.set();
}

bool Hub::stopped() noexcept {
  return !runs_.load(std::memory_order_acquire);
}

void Hub::leave_all() noexcept {
  const bool on_fiber = current().id() != 0;
  if (!on_fiber && !stopped()) coir::detail::fatal("a hub is destroyed by a plain thread while its server runs");
  Engine* const engine = this->engine();
  if (engine == nullptr) return;
  leaves_.store(true, std::memory_order_relaxed);
  if (on_fiber) {
    const Shield shield(Deadline::never());
    for (stopping(), close_resting(); size() != 0 || !stopped(); close_resting()) {
      static_cast<void>(sleep(std::chrono::milliseconds(1)));
    }
  } else {
    forget_all();
  }
  engine->keepers.remove(*this);
}

#endif

}  // namespace coir::http
