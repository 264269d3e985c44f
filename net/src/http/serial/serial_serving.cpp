// The one loop of a daemon without fibers: whom to serve next, and when to stop.
#include <coir/signal.h>
#include <coir/wait.h>
#include <signal.h>
#include <sys/socket.h>

#include <algorithm>
#include <span>

#include "http/serial/serial_engine.h"
#include "socket/kernel.h"

namespace coir::http {

// Stop is asked in the middle of every wait, the one for a slow client included, whether a signal has come.
struct SerialEngine::Stop : Interrupter {
  SerialEngine* engine;
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
      stop.lost = stop.engine->records_.taken();
    }
    return !stop.cut_off;
  }
};

std::size_t SerialEngine::serve_until(std::initializer_list<int> signals,
                                      std::chrono::milliseconds drain_timeout) noexcept {
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

void SerialEngine::serve_round() noexcept {
  if (!stopping_) {
    watch(-1);
    Deadline next = pause_end_.passed() ? Deadline::never() : pause_end_;
    for (const Connection* each = idle_.front(); each != nullptr; each = each->next) {
      next = std::min(next, Deadline::at_ns(expiry_ns(*each)));
    }
    const auto ready = wait_any({entries_, entry_count_}, next);
    // begin_stop has gone through the idle ones itself, and what is watched is closed.
    if (ready && !stopping_) collect();
    if (!stopping_) expire_idle();
  }
  serve_ready();
}

// watch fills in what poll is asked: `fd`, or nothing, and whoever else might want to be served.
void SerialEngine::watch(int fd) noexcept {
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
void SerialEngine::collect() noexcept {
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

void SerialEngine::serve_ready() noexcept {
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

// expiry_ns is when an idle connection is closed. The list is not in the order of it: those in their handshakes have a
// limit of their own.
std::int64_t SerialEngine::expiry_ns(const Connection& connection) const noexcept {
  if (connection.tls != nullptr && connection.stream.secure()) return connection.stream.handshake_deadline().ns();
  const std::chrono::nanoseconds limit = connection.tls != nullptr ? options.handshake_timeout : options.idle_timeout;
  return connection.since_ns + limit.count();
}

// expire_idle follows a poll, so that nobody whose request has arrived is closed.
void SerialEngine::expire_idle() noexcept {
  const std::int64_t now = monotonic_ns();
  for (Connection* connection = idle_.front(); connection != nullptr;) {
    Connection* const next = connection->next;
    if (expiry_ns(*connection) <= now) close_idle(*connection, counters.expired);
    connection = next;
  }
}

void SerialEngine::begin_exchange(Connection& connection) noexcept {
  connection.since_ns = monotonic_ns();
  connection.moved = 0;
}

void SerialEngine::begin_waiting(Connection& connection, Direction direction, Owes owes, Deadline deadline) noexcept {
  turned_away_ = false;
  connection.awaits = direction;
  if (owes == Owes::head) return await_head(connection.stream.fd(), deadline);
  await_content(connection, deadline);
}

// await_content lets a client that takes or sends little hold up the others for some seconds. One that goes on is not
// cut off: there is one exchange at a time, and somebody wants the next nearly always.
void SerialEngine::await_content(Connection& connection, Deadline deadline) noexcept {
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
      const bool asked = wait_any({entries_, entry_count_}, Deadline::now()).has_value();
      if (stopping_) return;
      if (ready_.front() != nullptr || (asked && others_want())) break;
    }
    const auto there = wait(fd, connection.awaits, std::min(deadline, Deadline::after(kLook)));
    if (there || there.error() != ErrorCode::timed_out || deadline.passed()) return;
  }
  counters.gave_way.fetch_add(1);
  ::shutdown(fd, reads ? SHUT_RD : SHUT_RDWR);
  turned_away_ = true;
}

void SerialEngine::await_head(int fd, Deadline deadline) noexcept {
  if (const auto there = wait(fd, Direction::readable, std::min(deadline, turn_end()));
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

bool SerialEngine::yield_turn() noexcept {
  if (!turn_end().passed()) return true;
  if (ready_.front() != nullptr) return false;
  watch(-1);
  return !wait_any({entries_, entry_count_}, Deadline::now()) || stopping_ || !others_want();
}

// others_want looks at what a poll found. An idle client that has only gone away wants nothing, and is closed.
bool SerialEngine::others_want() noexcept {
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
