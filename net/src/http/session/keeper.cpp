#include "http/session/keeper.h"

#include <coir/detail/fatal.h>
#include <coir/http/exchange.h>

#include <utility>

#include "http/connection/stream_log.h"
#include "http/session/engine.h"
#include "http/session/session.h"

namespace coir::http {

Keeper::~Keeper() {
  if (size() != 0) coir::detail::fatal("a keeper of streams is destroyed before their server has stopped");
  detach();
}

void Keeper::detach() noexcept {
  if (Engine* const engine = this->engine()) engine->keepers.remove(*this);
}

void Keeper::begin(Connection& connection, std::string_view, KeptMemory) noexcept {
  close(connection);
}

void Keeper::serve(Connection& connection, KeptMemory) noexcept {
  close(connection);
}

bool Keeper::drop_input(Connection& connection, std::span<char> into) noexcept {
  for (int most = 8; most > 0; --most) {
    const auto got = connection.stream.read(into, Deadline::now());
    if (!got || connection.stream.drained()) return got || got.error() == ErrorCode::timed_out;
  }
  return false;
}

std::expected<void, Error> Keeper::open(Exchange& exchange, Opening opening) noexcept {
  return Session::of(exchange).begin_content(
      opening == Opening::upgrade ? Session::Content::upgrade : Session::Content::until_close, 0);
}

std::expected<void, Error> Keeper::attach(Exchange& exchange) noexcept {
  Engine& engine = Session::of(exchange).engine_;
  if (engine.stopping()) return std::unexpected(Error{ErrorCode::unsupported});
  if (!engine.keepers.add(*this)) return std::unexpected(Error{ErrorCode::busy});
  return {};
}

Keeper::Place Keeper::reserve(std::size_t most) noexcept {
  std::size_t taken = size();
  while (taken < most) {
    if (kept_.compare_exchange_weak(taken, taken + 1, std::memory_order_relaxed)) return Place(*this);
  }
  return {};
}

std::expected<void, Error> Keeper::keep(Exchange& exchange, std::uint64_t mark, std::uint32_t part,
                                        Place place) noexcept {
  Session& session = Session::of(exchange);
  if (!session.may_be_kept()) return std::unexpected(Error{ErrorCode::invalid});
  if (auto kept = keep_content(exchange, mark, std::move(place)); !kept) return kept;
  session.part_ = part;
  return {};
}

std::expected<void, Error> Keeper::keep_content(Exchange& exchange, std::uint64_t mark, Place place) noexcept {
  Session& session = Session::of(exchange);
  if (!session.has_begun_content()) return std::unexpected(Error{ErrorCode::invalid});
  if (auto attached = attach(exchange); !attached) return attached;
  claim(session, mark, std::move(place));
  return {};
}

// claim has the session hand its connection over. A keeper that has claimed it before, for an answer that failed, loses it.
void Keeper::claim(Session& session, std::uint64_t mark, Place place) noexcept {
  if (std::exchange(place.keeper_, nullptr) == nullptr) kept_.fetch_add(1, std::memory_order_relaxed);
  if (Keeper* const before = std::exchange(session.keeper_, this)) before->lose();
  session.mark_ = mark;
  session.part_ = 0;
}

std::expected<void, Error> Keeper::suspend(Exchange& exchange, std::uint64_t mark) noexcept {
  Session& session = Session::of(exchange);
  if (auto attached = attach(exchange); !attached) return attached;
  claim(session, mark);
  session.suspended_ = true;
  return {};
}

void Keeper::readmit(Connection& connection, std::uint32_t requests) noexcept {
  connection.kept = false;
  connection.engine = engine();
  connection.transferred = 0;
  connection.requests = requests;
  lose();
}

void Keeper::admit(Connection& connection, std::uint64_t mark, std::uint32_t part) noexcept {
  connection.keeper = this;
  connection.mark = mark;
  connection.part = part;
  connection.kept = true;
}

void Keeper::close(Connection& connection) noexcept {
  Engine* const engine = this->engine();
  connection.kept = false;
  connection.engine = engine;
  engine->close(connection);
  // Behind the close: who finds nothing kept any more finds nothing open either.
  lose();
}

void Keeper::give_back(Connection& connection, std::uint32_t requests) noexcept {
  Engine* const engine = this->engine();
  end_log(connection);
  connection.kept = false;
  connection.engine = engine;
  connection.requests = requests;
  connection.transferred = 0;
  connection.stream.mark_readable();
  engine->serve_soon(connection);
  // As behind close: the connection is the engine's before it is nobody's here.
  lose();
}

void Keeper::linger(Connection& connection) noexcept {
  end_log(connection);
  connection.stream.shutdown_write();
  connection.owes = Owes::end;
  give_back(connection, 0);
}

void Keeper::abandon(Connection& connection) noexcept {
  // A stream that is closed tells nothing of what it was given.
  end_log(connection);
  connection.stream.abandon();
}

void Keeper::serve_soon(Connection& connection) noexcept {
  // Nothing is known of what its client has sent.
  connection.awaits = Direction::writable;
  engine()->serve_soon(connection);
}

bool Keeper::server_stops() const noexcept {
  return engine()->stopping();
}

bool Keeper::may_rest(const Connection& connection) const noexcept {
  if (leaves_.load(std::memory_order_relaxed)) return false;
  return !server_stops() || (!engine()->keepers.is_cut_off() && outlives_stop(connection));
}

void Keeper::leave(Connection& connection) noexcept {
  Locked locked(lock_);
  connection.rests = false;
  resting(connection.awaits).remove(connection);
}

// The record is armed with the lock held, so that a caller that has the lock and finds a connection in a list can take
// it: nothing that happens behind has_work is missed.
Keeper::Rested Keeper::rest_locked(Connection& connection, [[maybe_unused]] Arming& arming) noexcept {
  if (!may_rest(connection)) return Rested::failed;
  resting(connection.awaits).push_back(connection);
  connection.rests = true;
#if !COIR_NO_ASYNC
  if (const auto armed = arming.arm(connection, connection.awaits); !armed) {
    connection.rests = false;
    resting(connection.awaits).remove(connection);
    return armed.error() == ErrorCode::busy ? Rested::ready : Rested::failed;
  }
#endif
  return Rested::yes;
}

bool Keeper::finish_rest(Connection& connection, Rested rested) noexcept {
  if (rested == Rested::yes) return true;
  if (rested == Rested::failed) {
    farewell(connection);
    close(connection);
    return true;
  }
  mark_ready(connection);
  return false;
}

void Keeper::mark_ready(Connection& connection) noexcept {
  if (connection.awaits == Direction::readable) {
    connection.stream.mark_readable();
  } else {
    connection.stream.mark_writable();
  }
}

bool Keeper::disarm([[maybe_unused]] Connection& connection) noexcept {
#if COIR_NO_ASYNC
  return true;
#else
  return disarm_resting_wait(connection);
#endif
}

std::size_t Keeper::close_resting() noexcept {
  std::size_t closed = 0;
  for (const Direction direction : {Direction::readable, Direction::writable}) {
    while (Connection* const connection =
               take(direction, [&](const Connection& each, bool&) { return !may_rest(each); })) {
      farewell(*connection);
      close(*connection);
      ++closed;
    }
  }
  return closed;
}

void Keeper::forget_all() noexcept {
  forgotten_ = true;
  for (ConnectionList& list : resting_) {
    while (Connection* const connection = list.front()) {
      list.remove(*connection);
      connection->rests = false;
      end_log(*connection);
      farewell(*connection);
    }
  }
  kept_.store(0, std::memory_order_relaxed);
  forgotten_ = false;
}

bool Keeper::evict(std::int64_t not_after_ns) noexcept {
  for (const Direction direction : {Direction::writable, Direction::readable}) {
    Connection* const connection =
        take(direction, [&](const Connection& each, bool&) { return each.since_ns <= not_after_ns; });
    if (connection == nullptr) continue;
    engine()->counters.evicted.fetch_add(1, std::memory_order_relaxed);
    farewell(*connection);
    close(*connection);
    return true;
  }
  return false;
}

}  // namespace coir::http
