#include "http/threads/thread_engine.h"

#include <coir/detail/accounts.h>
#include <coir/port/memory.h>
#include <coir/signal.h>
#include <coir/sleep.h>
#include <coir/stack_size.h>
#include <coir/wait.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>

#include <memory>

#include "base/rounded.h"
#include "http/session/coarse_clock.h"
#include "http/session/shed.h"
#include "http/session/until_signal.h"
#include "socket/kernel.h"

namespace coir::http {
namespace {

using namespace std::chrono_literals;

// What TLS and the C library's functions want below a handler.
constexpr std::size_t kThreadStack = 256_KiB;

}  // namespace

const ThreadCalls ThreadEngine::kCalls = {
    .rest =
        [](Engine& engine, Connection& connection) noexcept {
          ThreadEngine& self = of(engine);
          return self.alone_ ? self.rest_here(place_of(connection)) : self.rest_on_thread(place_of(connection));
        },
    .close = [](Engine& engine, Connection& connection) noexcept { of(engine).end(place_of(connection)); },
    // Alone the thread is for whoever comes next.
    .yield_turn =
        [](Engine& engine) noexcept {
          return !of(engine).alone_ || !kernel::has_connection(of(engine).listener_.fd());
        },
};

Deadline ThreadEngine::resting_deadline(const Connection& connection) const noexcept {
  if (connection.tls == nullptr) return Deadline::after(options.idle_timeout);
  return connection.stream.secure() ? connection.stream.handshake_deadline()
                                    : Deadline::after(options.handshake_timeout);
}

// end is Engine::close.
void ThreadEngine::end(Place& place) noexcept {
  {
    const auto held = place.guard.lock();
    place.open = place.rests = false;
    place.stream.close();
  }
  account::connections.refund(connection_bytes());
}

// rest_on_thread blocks until the client sends something. begin_stop shuts down what it finds at rest; what comes to
// rest behind it is found here to be stopping: one of the two sees the other, as both hold the place's guard.
bool ThreadEngine::rest_on_thread(Place& place) noexcept {
  place.stream.rest();
  bool stops;
  {
    const auto held = place.guard.lock();
    place.rests = true;
    stops = stopping() && !kernel::has_input(place.stream.fd());
  }
  const auto there = stops ? std::unexpected(Error{ErrorCode::cancelled})
                           : wait(place.stream.fd(), Direction::readable, resting_deadline(place));
  {
    const auto held = place.guard.lock();
    place.rests = false;
  }
  if (there) {
    // A connection that begin_stop shut down has ended, as the session finds.
    place.stream.mark_readable();
    return false;
  }
  (stops ? counters.stopped_idle : counters.expired).fetch_add(1);
  end(place);
  return true;
}

// rest_here waits for the client, the next one and signals. A client that has been answered makes way for the next; one
// that has not said anything yet has the time that a head may take.
bool ThreadEngine::rest_here(Place& place) noexcept {
  place.stream.rest();
  const int fd = place.stream.fd();
  const Deadline deadline = resting_deadline(place);
  const Deadline first = Deadline::after(options.header_timeout);
  bool others = false;
  for (;;) {
    // The same question as of a listener: is anything there?
    if (kernel::has_connection(fd)) {
      place.stream.mark_readable();
      return false;
    }
    take_signal();
    if (stopping() || deadline.passed()) break;
    others = kernel::has_connection(listener_.fd());
    if (others && (place.requests > 0 || first.passed())) break;
    const Awaited several[] = {{fd}, {signals_fd()}, {others ? -1 : listener_.fd()}};
    const auto there = wait_several(several, others ? std::min(deadline, first) : deadline);
    if (!there && !there.error().is_late()) break;
  }
  (stopping() ? counters.stopped_idle : others ? counters.evicted : counters.expired).fetch_add(1);
  end(place);
  return true;
}

void ThreadEngine::take_signal() noexcept {
  const auto signal = wait_signal(signals_, Deadline::now());
  if (!signal) return;
  if (*signal != SIGHUP) {
    if (options.on_stop != nullptr && !stopping()) options.on_stop(options.context);
    return begin_stop();
  }
  if (options.on_hangup != nullptr) options.on_hangup(options.context);
}

void ThreadEngine::begin_stop() noexcept {
  stopping_.store(true);
  stops.cancel(kServerStops);
  listener_.close();
  for (Place& place : places_) {
    const auto held = place.guard.lock();
    if (place.rests && !kernel::has_input(place.stream.fd())) ::shutdown(place.stream.fd(), SHUT_RDWR);
  }
}

std::size_t ThreadEngine::cut_off() noexcept {
  std::size_t count = 0;
  for (Place& place : places_) {
    const auto held = place.guard.lock();
    if (!place.open) continue;
    ++count;
    ::shutdown(place.stream.fd(), SHUT_RDWR);
  }
  return count;
}

void ThreadEngine::serve_connection(Place& place, TcpStream&& stream) noexcept {
  counters.accepted.fetch_add(1);
  if (!account::connections.charge(connection_bytes())) {
    counters.refused.fetch_add(1);
    Stream refused(std::move(stream));
    return shed(refused, tls_ != nullptr);
  }
  {
    const auto held = place.guard.lock();
    place.stream = std::move(stream);
    place.open = true;
  }
  place.tls = tls_;
  place.requests = 0;
  // Its request may be there already.
  if (rest(place, coarse_ns())) return;
  HandlerWatch watch(*this);
  place.session->serve(place, watch);
}

// accept_next has one of the threads wait for the next connection: all of them would be woken for each.
std::expected<TcpStream, Error> ThreadEngine::accept_next() noexcept {
  const auto held = accepting_.lock();
  return listener_.accept();
}

// pause lets time pass where the kernel is short.
void ThreadEngine::pause() noexcept {
  counters.accept_pauses.fetch_add(1);
  static_cast<void>(sleep(50ms));
}

void ThreadEngine::serve_place(Place& place) noexcept {
  while (!stopping()) {
    auto accepted = accept_next();
    if (accepted) {
      serve_connection(place, std::move(*accepted));
    } else if (accepted.error() != ErrorCode::closed) {
      pause();
    }
  }
}

std::expected<void, Error> ThreadEngine::serve_here(std::initializer_list<int> signals) noexcept {
  if (auto caught = catch_signals(signals); !caught) return caught;
  alone_ = true;
  signals_ = signals;
  for (;;) {
    take_signal();
    if (stopping()) return {};
    const Awaited several[] = {{listener_.fd()}, {signals_fd()}};
    if (auto there = wait_several(several); !there) {
      if (there.error().ends_waits()) return there;
      static_cast<void>(sleep(50ms));
    }
    if (auto accepted = listener_.accept(Deadline::now())) {
      serve_connection(places_.front(), std::move(*accepted));
    } else if (accepted.error() != ErrorCode::timed_out) {
      pause();
    }
  }
}

std::expected<std::size_t, Error> ThreadEngine::serve_on_threads(std::initializer_list<int> signals,
                                                                 std::chrono::milliseconds drain_timeout) noexcept {
  if (auto caught = catch_signals(signals); !caught) return std::unexpected(caught.error());
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kThreadStack + options.handler_stack);
  // Signals are for the thread that waits for them.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  std::size_t started = 0;
  for (Place& place : places_) {
    running_.add();
    const auto body = [](void* argument) -> void* {
      Place& mine = *static_cast<Place*>(argument);
      ThreadEngine& self = of(*mine.engine);
      self.serve_place(mine);
      self.running_.done();
      return nullptr;
    };
    if (pthread_create(&place.thread, &attributes, body, &place) != 0) {
      running_.done();
      break;
    }
    ++started;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  const bool all_started = started == places_.size();
  std::size_t lost = 0;
  if (all_started) {
    lost = until_signal(*this, signals, drain_timeout);
  } else {
    begin_stop();
  }
  for (Place& place : places_.first(started)) pthread_join(place.thread, nullptr);
  if (!all_started) return std::unexpected(Error{ErrorCode::limit});
  return lost;
}

ThreadEngine* ThreadEngine::create(const ServerOptions& options, std::size_t places, TcpListener&& listener,
                                   TlsContextSlot* tls) noexcept {
  if (!account::http.charge(places * sizeof(OwnSession))) return nullptr;
  const std::size_t places_at = sizeof(ThreadEngine);
  const std::size_t sessions_at = rounded(places_at + places * sizeof(Place), port::kPageBytes);
  static_assert(sizeof(ThreadEngine) % alignof(Place) == 0);
  auto* const memory = static_cast<char*>(port::reserve(sessions_at + places * sizeof(OwnSession)));
  if (memory == nullptr) {
    account::http.refund(places * sizeof(OwnSession));
    return nullptr;
  }
  auto* const first = reinterpret_cast<Place*>(memory + places_at);
  auto* const engine = ::new (memory) ThreadEngine(options, {first, places}, std::move(listener), tls);
  if (tls != nullptr) engine->take_context(tls);
  for (std::size_t i = 0; i < places; ++i) {
    auto* const own = ::new (memory + sessions_at + i * sizeof(OwnSession)) OwnSession(*engine);
    ::new (first + i) Place(&own->session, *engine);
  }
  return engine;
}

void ThreadEngine::destroy(ThreadEngine* engine) noexcept {
  const std::size_t places = engine->places_.size();
  const std::size_t bytes =
      rounded(sizeof(ThreadEngine) + places * sizeof(Place), port::kPageBytes) + places * sizeof(OwnSession);
  account::http.refund(places * sizeof(OwnSession));
  std::destroy_n(engine->places_.data(), places);
  std::destroy_at(engine);
  port::release(engine, bytes);
}

}  // namespace coir::http
