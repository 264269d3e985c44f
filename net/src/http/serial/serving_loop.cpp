#include "http/serial/serving_loop.h"

#include <coir/signal.h>
#include <coir/wait.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <new>

#include "http/serial/serial_engine.h"
#include "socket/kernel.h"

namespace coir::http {

ServingLoop::ServingLoop(SerialEngine& engine, OwnSession* session, pollfd* entries) noexcept
    : engine_(engine), session_(&(new(session) OwnSession(engine))->session), poll_set_(entries) {}

// Stop is asked in the middle of every wait, the wait for a slow client included, whether a signal has come.
struct ServingLoop::Stop : Interrupter {
  SerialEngine* engine;
  std::initializer_list<int> signals;
  std::chrono::milliseconds drain_timeout;
  Deadline drained;  // when the draining is cut off
  bool cut_off = false;
  std::size_t lost = 0;

  static bool goes_on(Interrupter& self) noexcept {
    auto& stop = static_cast<Stop&>(self);
    const auto signal = wait_signal(stop.signals, Deadline::now());
    if (signal && *signal == SIGHUP) {
      const ServerOptions& options = stop.engine->options;
      if (options.on_hangup) options.on_hangup();
      // It may have added listeners, or closed some.
      return stop.engine->loop.end_wait();
    }
    const bool signalled = signal.has_value();
    if (signalled && !stop.engine->stopping()) {
      stop.drained = Deadline::after(stop.drain_timeout);
      stop.deadline = std::min(stop.drained, Deadline::after(std::chrono::nanoseconds(kHeadGraceAtStopNs)));
      const ServerOptions& options = stop.engine->options;
      if (options.on_stop) options.on_stop();
      stop.engine->begin_stop();
      return true;
    }
    if (stop.deadline.passed() && !stop.drained.passed()) {
      stop.deadline = stop.drained;
      stop.engine->loop.end_heads();
    }
    if ((signalled || stop.deadline.passed()) && !stop.cut_off) {
      stop.cut_off = true;
      stop.deadline = Deadline::now();  // ends every later wait as well
      stop.lost = stop.engine->open_connections();
    }
    return !stop.cut_off;
  }
};

std::size_t ServingLoop::serve_until(std::initializer_list<int> signals,
                                     std::chrono::milliseconds drain_timeout) noexcept {
  static_cast<void>(catch_signals(signals));
  Stop stop;
  stop.happened = &Stop::goes_on;
  stop.fd = signals_fd();
  stop.engine = &engine_;
  stop.signals = signals;
  stop.drain_timeout = drain_timeout;
  set_interrupter(&stop);
  while (!engine_.stopped() && !stop.cut_off) serve_round();
  set_interrupter(nullptr);
  while (Connection* connection = engine_.ready.front()) {
    engine_.ready.remove(*connection);
    if (connection->kept) {
      connection->keeper->close(*connection);
    } else {
      engine_.close(*connection);
    }
  }
  return stop.lost;
}

void ServingLoop::serve_round() noexcept {
  if (!engine_.stopping()) {
    watch(-1);
    Deadline next = engine_.may_accept() ? Deadline::never() : engine_.accept_again();
    for (const Connection* each = engine_.resting.front(); each != nullptr; each = each->next) {
      next = std::min(next, Deadline::at_ns(expiry_ns(*each)));
    }
    for (const Keeper* keeper = engine_.keepers.first(); keeper != nullptr; keeper = keeper->next) {
      next = std::min(next, keeper->due());
    }
    const bool ready = wait(next);
    // begin_stop has looked through the resting ones itself, and what is watched is closed.
    if (ready && !engine_.stopping()) collect();
    for (Keeper* keeper = engine_.keepers.first(); keeper != nullptr && !engine_.stopping(); keeper = keeper->next) {
      if (keeper->due().passed()) keeper->tick();
    }
    if (!engine_.stopping()) expire_resting();
  }
  serve_ready();
}

// watch has poll watch `fd`, or -1 for none, and whoever else might want to be served.
void ServingLoop::watch(int fd) noexcept {
  poll_set_.watch(fd, engine_.listeners(), engine_.may_accept(), engine_.resting, engine_.keepers.first());
}

bool ServingLoop::wait(Deadline deadline) noexcept {
  waits_ = true;
  reloaded_ = false;
  const bool ready = poll_set_.wait(deadline).has_value();
  waits_ = false;
  return ready;
}

// collect follows a poll. Connections that rested and have become readable come before new ones.
void ServingLoop::collect() noexcept {
  poll_set_.each_ready(engine_.resting, [this](Connection& connection) {
    engine_.resting.remove(connection);
    engine_.ready.push_back(connection);
    return true;
  });
  poll_set_.each_ready_kept(engine_.keepers.first(), [this](Connection& connection) {
    connection.keeper->leave(connection);
    engine_.ready.push_back(connection);
  });
  for (std::size_t i = 0; i < engine_.listeners().size(); ++i) {
    if (poll_set_.has_connection(i)) engine_.accept_from(i);
  }
}

void ServingLoop::serve_ready() noexcept {
  while (Connection* connection = engine_.ready.front()) {
    engine_.ready.remove(*connection);
    if (!connection->kept) connection->stream.mark_readable();
    turn_began_ns_ = monotonic_ns();
    turned_away_ = false;
    serves_ = true;
    HandlerWatch watch(engine_);
    session_->serve(*connection, watch);
    serves_ = false;
  }
}

// expiry_ns is when a resting connection is closed. The list is not in the order of it, for those in their handshakes
// have a limit of their own.
std::int64_t ServingLoop::expiry_ns(const Connection& connection) const noexcept {
  if (connection.tls != nullptr && connection.stream.secure()) return connection.stream.handshake_deadline().ns();
  const ServerOptions& options = engine_.options;
  const std::chrono::nanoseconds limit = connection.tls != nullptr  ? options.handshake_timeout
                                         : connection.has_half_head ? options.header_timeout
                                                                    : options.idle_timeout;
  return connection.since_ns + limit.count();
}

// expire_resting follows a poll, so that no client whose request has arrived is closed. A client that owes the rest of a head gets
// 408.
void ServingLoop::expire_resting() noexcept {
  const std::int64_t now = monotonic_ns();
  for (Connection* connection = engine_.resting.front(); connection != nullptr;) {
    Connection* const next = connection->next;
    const bool over = expiry_ns(*connection) <= now;
    if (over && connection->has_half_head) {
      engine_.resting.remove(*connection);
      engine_.ready.push_back(*connection);
    } else if (over) {
      engine_.close_resting(*connection, engine_.counters.expired);
    }
    connection = next;
  }
}

// The shutdown wakes the wait in whose middle this is called.
void ServingLoop::end_heads() noexcept {
  heads_over_ = true;
  if (awaited_head_ >= 0) ::shutdown(awaited_head_, SHUT_RD);
}

void ServingLoop::begin_waiting(Connection& connection, Direction direction, Owes owes, Deadline deadline) noexcept {
  turned_away_ = false;
  connection.awaits = direction;
  const int fd = connection.stream.fd();
  if (owes == Owes::end) return await_head(fd, deadline);
  if (owes != Owes::head) return await_content(connection, deadline);
  awaited_head_ = fd;
  if (!heads_over_) await_head(fd, deadline);
  awaited_head_ = -1;
  if (!heads_over_) return;
  ::shutdown(fd, SHUT_RD);
  turned_away_ = true;
}

// await_content lets a client that takes or sends little hold up the others for some seconds. A client that makes
// progress is not cut off: there is one exchange at a time, and nearly always somebody wants the next.
void ServingLoop::await_content(Connection& connection, Deadline deadline) noexcept {
  constexpr std::int64_t kGraceNs = 2'000'000'000;
  constexpr std::chrono::milliseconds kLook(500);
  constexpr std::uint64_t kSlow = 4;  // bytes a millisecond
  const int fd = connection.stream.fd();
  const bool reads = connection.awaits == Direction::readable;
  for (;;) {
    // Before the wait, which may end at once: a byte now and then renews nothing.
    const std::int64_t spent = monotonic_ns() - connection.since_ns;
    if (spent >= kGraceNs && progress(connection) / static_cast<std::uint64_t>(spent / 1'000'000) < kSlow) {
      watch(-1);
      const bool asked = wait(Deadline::now());
      if (engine_.stopping()) return;
      if (engine_.ready.front() != nullptr || (asked && others_want())) break;
    }
    const auto there = coir::wait(fd, connection.awaits, std::min(deadline, Deadline::after(kLook)));
    if (there || !there.error().is_late() || deadline.passed()) return;
  }
  engine_.counters.evicted_slow.fetch_add(1);
  ::shutdown(fd, reads ? SHUT_RD : SHUT_RDWR);
  turned_away_ = true;
}

void ServingLoop::await_head(int fd, Deadline deadline) noexcept {
  if (const auto there = coir::wait(fd, Direction::readable, std::min(deadline, turn_end()));
      there || there.error() != ErrorCode::timed_out || deadline.passed()) {
    return;
  }
  // The first event decides, of this client or another.
  while (engine_.ready.front() == nullptr) {
    watch(fd);
    if (!wait(deadline)) {
      if (reloaded_) continue;
      return;
    }
    if (poll_set_.is_served_ready()) return;
    if (!engine_.stopping() && others_want()) break;
  }
  // The reader finds the end of the stream.
  ::shutdown(fd, SHUT_RD);
  turned_away_ = true;
}

bool ServingLoop::yield_turn() noexcept {
  if (!turn_end().passed()) return true;
  if (engine_.ready.front() != nullptr) return false;
  watch(-1);
  return !wait(Deadline::now()) || engine_.stopping() || !others_want();
}

// others_want looks at what a poll found. A resting client that has only gone away wants nothing, and is closed.
bool ServingLoop::others_want() noexcept {
  for (std::size_t i = 0; i < engine_.listeners().size(); ++i) {
    if (poll_set_.has_connection(i) && engine_.listeners()[i].is_open()) return true;
  }
  bool wants = false;
  poll_set_.each_ready(engine_.resting, [&](Connection& connection) {
    wants = kernel::has_input(connection.stream.fd());
    if (wants) return false;
    engine_.resting.remove(connection);
    engine_.close(connection);
    return true;
  });
  return wants;
}

}  // namespace coir::http
