#include "http/session/keeper.h"

#include <coir/detail/fatal.h>
#include <coir/http/exchange.h>

#include <utility>

#include "base/turn.h"
#include "http/session/engine.h"
#include "http/session/session.h"
#include "http/session/stream_log.h"

namespace coir::http {
namespace {

// Guards keepers that change their server against that server's end.
constinit Spinlock g_changing;

}  // namespace

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
  constexpr int kMost = 8;
  for (int reads = 0; reads < kMost; ++reads) {
    const auto got = connection.stream.read(into, Deadline::now());
    if (!got) return got.error() == ErrorCode::timed_out;
    if (connection.stream.drained()) return true;
  }
  return false;
}

std::expected<void, Error> Keeper::open(Exchange& exchange, Opening opening) noexcept {
  return exchange.session_.begin_content(
      opening == Opening::upgrade ? Session::Content::upgrade : Session::Content::until_close, 0);
}

std::expected<void, Error> Keeper::attach(Exchange& exchange) noexcept {
  Engine& engine = exchange.session_.engine_;
  if (engine.stopping()) return std::unexpected(Error{ErrorCode::unsupported});
  if (!engine.keepers.add(*this)) return std::unexpected(Error{ErrorCode::busy});
  return {};
}

std::expected<void, Error> Keeper::keep(Exchange& exchange, std::uint64_t mark, std::uint32_t part) noexcept {
  if (!exchange.session_.may_be_kept()) return std::unexpected(Error{ErrorCode::invalid});
  if (auto kept = keep_content(exchange, mark); !kept) return kept;
  exchange.session_.part_ = part;
  return {};
}

std::expected<void, Error> Keeper::keep_content(Exchange& exchange, std::uint64_t mark) noexcept {
  Session& session = exchange.session_;
  if (!session.has_begun_content()) return std::unexpected(Error{ErrorCode::invalid});
  if (auto attached = attach(exchange); !attached) return attached;
  claim(session, mark);
  return {};
}

// claim has the session hand its connection over. A keeper that has claimed it before, for an answer that failed, loses it.
void Keeper::claim(Session& session, std::uint64_t mark) noexcept {
  kept_.fetch_add(1, std::memory_order_relaxed);
  if (Keeper* const before = std::exchange(session.keeper_, this)) before->lose();
  session.mark_ = mark;
  session.part_ = 0;
}

std::expected<void, Error> Keeper::suspend(Exchange& exchange, std::uint64_t mark) noexcept {
  Session& session = exchange.session_;
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

void Keeper::leave(Connection& connection) noexcept {
  Locked locked(lock_);
  connection.rests = false;
  resting(connection.awaits).remove(connection);
}

// The record is armed with the lock held, so that a caller that has the lock and finds a connection in a list can take
// it: nothing that happens behind has_work is missed.
Keeper::Rested Keeper::rest_locked(Connection& connection, [[maybe_unused]] Arming& arming) noexcept {
  if (server_stops() || leaves_.load(std::memory_order_relaxed)) return Rested::failed;
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
    while (Connection* const connection = take(direction, [](const Connection&, bool&) { return true; })) {
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

void Keepers::forget() noexcept {
  while (Keeper* const keeper = visit(nullptr)) {
    keeper->forget_all();
    const Locked changing(g_changing);
    leave(*keeper);
    list_.remove(*keeper);
    keeper->set_engine(nullptr);
  }
}

bool Keepers::add(Keeper& keeper) noexcept {
  if (keeper.engine() == &engine_) return true;
  const Locked changing(g_changing);
  Engine* const before = keeper.engine();
  if (before != nullptr && before != &engine_ && before->stopping()) static_cast<void>(before->keepers.let_go(keeper));
  Locked locked(lock_);
  // If two add it at the same time, one of them does.
  if (keeper.engine() != nullptr) return keeper.engine() == &engine_;
  list_.push_back(keeper);
  keeper.set_engine(&engine_);
  return true;
}

bool Keepers::let_go(Keeper& keeper) noexcept {
  Locked locked(lock_);
  if (keeper.visits != 0 || keeper.size() != 0 || !keeper.stopped()) return false;
  list_.remove(keeper);
  keeper.set_engine(nullptr);
  return true;
}

void Keepers::remove(Keeper& keeper) noexcept {
  for (;; let_others_run()) {
    Locked locked(lock_);
    if (keeper.visits != 0) continue;
    list_.remove(keeper);
    keeper.set_engine(nullptr);
    return;
  }
}

Keeper* Keepers::visit(Keeper* keeper) noexcept {
  Locked locked(lock_);
  Keeper* const next = keeper == nullptr ? list_.front() : keeper->next;
  if (keeper != nullptr) --keeper->visits;
  if (next != nullptr) ++next->visits;
  return next;
}

void Keepers::leave(Keeper& keeper) noexcept {
  Locked locked(lock_);
  --keeper.visits;
}

bool Keepers::stop() noexcept {
  bool stopped = true;
  for (Keeper* keeper = visit(nullptr); keeper != nullptr; keeper = visit(keeper)) {
    keeper->stopping();
    engine_.counters.stopped_idle.fetch_add(keeper->close_resting(), std::memory_order_relaxed);
    if (keeper->size() != 0 || !keeper->stopped()) stopped = false;
  }
  return stopped;
}

bool Keepers::evict(std::int64_t not_after_ns) noexcept {
  for (Keeper* keeper = visit(nullptr); keeper != nullptr; keeper = visit(keeper)) {
    if (!keeper->evict(not_after_ns)) continue;
    leave(*keeper);
    return true;
  }
  return false;
}

void Keepers::look_around(std::int64_t now_ns) noexcept {
  for (bool again = true; again;) {
    again = false;
    for (Keeper* keeper = visit(nullptr); keeper != nullptr; keeper = visit(keeper)) {
      if (keeper->look_around(now_ns)) again = true;
    }
  }
}

std::size_t Keepers::kept() noexcept {
  Locked locked(lock_);
  std::size_t sum = 0;
  for (Keeper* keeper = list_.front(); keeper != nullptr; keeper = keeper->next) sum += keeper->size();
  return sum;
}

}  // namespace coir::http
