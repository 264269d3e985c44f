// The one loop of a daemon without fibers: whom to serve next, and when to stop.
#include <coir/signal.h>
#include <coir/wait.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <span>

#include "../net/kernel.h"
#include "serial_engine.h"

namespace coir::http {

// Stop is asked in the middle of every wait, the one for a slow client included, whether a signal has come.
struct Engine::Stop : Interrupter {
  Engine* engine;
  std::initializer_list<int> signals;
  std::chrono::milliseconds drain_timeout;
  bool cut_off = false;
  std::size_t lost = 0;

  static bool goes_on(Interrupter& self) noexcept {
    auto& stop = static_cast<Stop&>(self);
    const auto signal = wait_signal(stop.signals, Deadline::now());
    if (signal && *signal == SIGHUP) {
      const ServerOptions& options = stop.engine->options;
      if (options.on_hangup != nullptr) options.on_hangup(options.context);
      return true;
    }
    const bool signalled = signal.has_value();
    if (signalled && !stop.engine->stopping()) {
      stop.deadline = Deadline::after(stop.drain_timeout);
      stop.engine->begin_stop();
      return true;
    }
    if ((signalled || stop.deadline.passed()) && !stop.cut_off) {
      stop.cut_off = true;
      stop.lost = stop.engine->open_;
    }
    return !stop.cut_off;
  }
};

std::size_t Engine::serve_until(std::initializer_list<int> signals, std::chrono::milliseconds drain_timeout) noexcept {
  static_cast<void>(catch_signals(signals));
  Stop stop;
  stop.happened = &Stop::goes_on;
  stop.fd = signals_fd();
  stop.engine = this;
  stop.signals = signals;
  stop.drain_timeout = drain_timeout;
  set_interrupter(&stop);
  while (!stopped() && !stop.cut_off) serve_round();
  set_interrupter(nullptr);
  while (Connection* connection = ready_.front()) {
    ready_.remove(*connection);
    close(*connection);
  }
  return stop.lost;
}

void Engine::serve_round() noexcept {
  if (!stopping_) {
    watch(-1);
    Deadline next = pause_end_.passed() ? Deadline::never() : pause_end_;
    if (const Connection* oldest = idle_.front()) {
      next = std::min(next, Deadline::at_ns(oldest->since_ns + std::chrono::nanoseconds(options.idle_timeout).count()));
    }
    const auto ready = wait_any({entries_, entry_count_}, next);
    // begin_stop has gone through the idle ones itself, and what is watched is closed.
    if (ready && !stopping_) collect();
    if (!stopping_) expire_idle();
  }
  serve_ready();
}

// watch fills in what poll is asked: `fd`, or nothing, and whoever else might want to be served.
void Engine::watch(int fd) noexcept {
  entries_[1] = {.fd = fd, .events = POLLIN, .revents = 0};
  std::size_t at = 2;
  const bool accepting = pause_end_.passed();
  for (std::size_t i = 0; i < listener_count_; ++i) {
    entries_[at++] = {.fd = accepting ? listeners_[i].fd() : -1, .events = POLLIN, .revents = 0};
  }
  for (const Connection* connection = idle_.front(); connection != nullptr; connection = connection->next) {
    entries_[at++] = {.fd = connection->stream.fd(), .events = POLLIN, .revents = 0};
  }
  entry_count_ = at;
}

// collect follows a poll: the idle ones that have something to say come before those that are new.
void Engine::collect() noexcept {
  const pollfd* entry = entries_ + 2 + listener_count_;
  for (Connection* connection = idle_.front(); connection != nullptr; ++entry) {
    Connection* const next = connection->next;
    if (entry->revents != 0) {
      idle_.remove(*connection);
      ready_.push_back(*connection);
    }
    connection = next;
  }
  for (std::size_t i = 0; i < listener_count_; ++i) {
    if (entries_[2 + i].revents != 0) accept_from(i);
  }
}

void Engine::serve_ready() noexcept {
  while (Connection* connection = ready_.front()) {
    ready_.remove(*connection);
    connection->stream.mark_readable();
    turn_began_ns_ = monotonic_ns();
    turned_away_ = false;
    active_ = 1;
    session_->serve(*connection);
    active_ = 0;
  }
}

// expire_idle follows a poll, so that nobody whose request has arrived is closed.
void Engine::expire_idle() noexcept {
  const std::int64_t not_after = monotonic_ns() - std::chrono::nanoseconds(options.idle_timeout).count();
  while (Connection* connection = idle_.front()) {
    if (connection->since_ns > not_after) return;
    close_idle(*connection, counters.expired);
  }
}

void Engine::begin_reading(Connection& connection, Deadline deadline) noexcept {
  turned_away_ = false;
  const int fd = connection.stream.fd();
  // What the server computes for a handshake is not the client's delay.
  const Deadline turn = connection.tls != nullptr ? Deadline::at_ns(monotonic_ns() + kTurnNs) : turn_end();
  if (const auto there = wait(fd, Direction::readable, std::min(deadline, turn));
      there || there.error() != ErrorCode::timed_out || deadline.passed()) {
    return;
  }
  // Whoever is first, this client or another, decides.
  while (ready_.front() == nullptr) {
    watch(fd);
    if (!wait_any({entries_, entry_count_}, deadline) || entries_[1].revents != 0) return;
    if (!stopping_ && others_want()) break;
  }
  // The reader finds the end of the stream.
  ::shutdown(fd, SHUT_RD);
  turned_away_ = true;
}

bool Engine::give_way() noexcept {
  if (!turn_end().passed()) return true;
  if (ready_.front() != nullptr) return false;
  watch(-1);
  return !wait_any({entries_, entry_count_}, Deadline::now()) || stopping_ || !others_want();
}

// others_want looks at what a poll found. An idle client that has only gone away wants nothing, and is closed.
bool Engine::others_want() noexcept {
  for (std::size_t i = 0; i < listener_count_; ++i) {
    if (entries_[2 + i].revents != 0) return true;
  }
  const pollfd* entry = entries_ + 2 + listener_count_;
  for (Connection* connection = idle_.front(); connection != nullptr; ++entry) {
    Connection* const next = connection->next;
    if (entry->revents != 0) {
      if (kernel::has_input(connection->stream.fd())) return true;
      idle_.remove(*connection);
      close(*connection);
    }
    connection = next;
  }
  return false;
}

}  // namespace coir::http
