#include "http/session/session.h"

#include <utility>

#include "http/connection/coarse_clock.h"
#include "http/connection/connection.h"
#include "http/session/engine.h"
#include "http/session/keeper.h"
#include "http/session/own_host.h"
#include "socket/kernel.h"
#include "socket/linger.h"

namespace coir::http {

// answer_arrived answers every request that lies whole in the buffer, in order. The responses gather in buffers->out.
Session::After Session::answer_arrived() noexcept {
  while (begin_ < end_) {
    const std::string_view arrived(buffers->in + begin_, end_ - begin_);
    const bool in_place = kFibers && arrived.size() <= KeptHead::kPieceBytes;
    const auto parse = [&](std::string_view text) {
      return parse_head(text, seen_, buffers->headers, engine_.options.limits, request_);
    };
    const ParseResult parsed = parse(in_place ? kept_head_.take(arrived) : arrived);
    if (parsed.state == ParseState::incomplete) {
      if (seen_ == 0) {
        head_deadline_ = Deadline::after(engine_.options.header_timeout);
        engine_.begin_exchange(*connection_);
        waited_ns = client_waited_ns_ = 0;
      }
      seen_ = end_ - begin_;
      return After::go_on;
    }
    seen_ = 0;
    if (parsed.state == ParseState::bad) {
      refuse(parsed.status);
      return After::linger;
    }
    // Content is read behind the head. A head near the end of the buffer, after earlier requests, moves to the front;
    // the views of the request move with it.
    if (request_.framing != Framing::none && begin_ > 0 && begin_ + parsed.head_bytes > kMaxHeadBytes) {
      compact();
      continue;
    }
    begin_body(parsed.head_bytes);
    if (in_place) {
      head_in_buffers_ = !kept_head_.settle(request_, parsed.head_bytes);
      if (head_in_buffers_) [[unlikely]]
        static_cast<void>(parse(arrived));
    } else if constexpr (kFibers) {
      head_in_buffers_ = !kept_head_.keep(request_, arrived.substr(0, parsed.head_bytes));
    }
    lends_scratch_ = lends_path_ = false;
    if (const After after = answer_parsed(); after != After::go_on) return after;
  }
  return After::go_on;
}

Session::After Session::run() noexcept {
  constexpr int kBurst = 8;
  for (int burst = 1;; ++burst) {
    if (const After after = answer_arrived(); after != After::go_on) return after;
    std::expected<std::size_t, Error> got;
    bool between_requests = begin_ == end_;
    if (between_requests) {
      begin_ = end_ = 0;
      if (!flush()) return After::close;
      // A short read has taken all there was: sleep without asking again.
      if (look_again_) [[unlikely]]
        connection_->stream.mark_readable();
      if (connection_->stream.drained()) return After::rest;
      got = read_input(Deadline::now());
      // A client that has begun a record owes the rest of it as it owes that of a head: it keeps the session's buffers.
      if (!got && got.error() == ErrorCode::timed_out && connection_->stream.midway()) {
        between_requests = false;
        head_deadline_ = Deadline::after(engine_.options.header_timeout);
        engine_.begin_exchange(*connection_);
        got = read_rest_of_head();
      }
    } else {
      if (!flush()) return After::close;
      // The session does not wait, but for whom nothing can be kept.
      while (!(got = read_what_is_there()) && got.error() == ErrorCode::timed_out && !head_deadline_.passed()) {
        // The flush may have waited, and so moved the beginning.
        connection_->since_ns = head_deadline_.ns() - std::chrono::nanoseconds(engine_.options.header_timeout).count();
        if (engine_.rest_with_head(*connection_, {buffers->in + begin_, end_ - begin_})) return After::kept;
        if (!connection_->stream.drained() && !connection_->stream.midway()) continue;
        got = read_rest_of_head();
        break;
      }
    }
    if (!got) {
      if (got.error() != ErrorCode::timed_out)
        return connection_->stream.has_told_fault() ? After::linger : After::close;
      if (between_requests) return After::rest;
      refuse(408);
      // All that it has sent has been read: it does not lose the answer. The only session lingers for nobody.
      return engine_.stopping() || !kFibers ? After::close : After::linger;
    }
    // A client that never pauses must not keep the worker for itself.
    if (burst % kBurst == 0) hurried_ = !engine_.yield_turn();
  }
}

bool Session::has_own_host() const noexcept {
  return is_own_host(request_.authority, engine_, connection_->stream.tcp());
}

// is_misdirected tells whether a request is for somebody else. Requests that change nothing may use any name.
bool Session::is_misdirected() const noexcept {
  if (request_.https && !connection_->stream.secure()) return true;
  const bool looks =
      request_.method == Method::get || request_.method == Method::head || request_.method == Method::options;
  if (looks && !request_.asks_websocket) [[likely]]
    return false;
  return !has_own_host();
}

void Session::begin_answer(std::int64_t now_ns) noexcept {
  phase_ = Phase::none;
  fault_ = 0;
  status_ = 0;
  now_ = 0;
  added_ = 0;
  error_look_ = &engine_.options.on_error;
  content_sent_ = 0;
  waited_ns = client_waited_ns_ = 0;
  forget_notes();
  began_ns_ = now_ns;
  keep_ = request_.keep_alive && !hurried_;
  head_only_ = request_.method == Method::head;
  unwanted_ = detached_ = releases_ = false;
  // As Engine::begin_exchange does, by the time that has been read already.
  connection_->since_ns = began_ns_;
  connection_->transferred = 0;
  ++connection_->requests;
  const std::uint32_t most = engine_.options.max_requests_per_connection;
  if (most != 0 && connection_->requests >= most) keep_ = false;
}

Session::After Session::answer_parsed() noexcept {
  begin_answer(monotonic_ns());
  Exchange exchange(*this);
  if (is_misdirected()) {
    exchange.respond(421, "text/plain",
                     "421 Misdirected Request: Host is no name of this server, nor one of its allowed hosts\n");
  } else if (!engine_.clients.may_ask(connection_->client)) {
    engine_.counters.limited_requests.fetch_add(1, std::memory_order_relaxed);
    exchange.respond_status(429, "Retry-After: 1\r\n");
  } else {
    watch_->begin();
    engine_.options.handler(exchange);
    return end_answer();
  }
  return finish();
}

// end_answer is behind a handler.
Session::After Session::end_answer() noexcept {
  // Then nothing here is this fiber's any more.
  if (detached_) return After::detached;
  if (watch_->end()) look_again_ = true;
  hold();
  return keeper_ == nullptr ? finish() : hand_over();
}

// end_content ends what the handler has begun.
void Session::end_content() noexcept {
  if (content_kind_ == Content::fixed && content_left_ != 0 && !head_only_)
    static_cast<void>(cut_short(Error{ErrorCode::invalid}));
  if (content_kind_ == Content::chunked && !head_only_ && !broken_) static_cast<void>(end_chunks());
}

// finish completes the response, finds the end of the request and decides what becomes of the connection.
Session::After Session::finish() noexcept {
  if (phase_ != Phase::content && !broken_) {
    keep_ = false;
    body_done_ = true;
    const int status = fault_ != 0 ? fault_ : 500;
    fault_ = 0;
    if (added_ > sizeof buffers->added_fields) added_ = 0;
    answer_status(status, {});
    end_content();
    told_end();
    return broken_ ? After::close : After::linger;
  }
  end_content();
  told_end();
  if (broken_ && cut_short_ && flush()) {
    // The client must not lose the answers before this one, as it would if the connection were closed with anything
    // unread; by TLS it must not be told that this one is whole.
    broken_ = ends_by_close();
    connection_->stream.tcp().shutdown_write();
    return After::linger;
  }
  if (broken_) return After::close;

  const bool unread = !body_done_ && (request_.expects_continue && !body_begun_ ? true : !skip_body());
  begin_ = body_at_;
  if (broken_) return After::close;
  if (unread) return After::linger;
  if (keep_) return After::go_on;
  // More requests may be on their way to a connection that the client thinks is kept. To close over what has come and was
  // not read resets the connection, and the client may lose the answer.
  const bool lingers = begin_ < end_ || request_.keep_alive || kernel::has_input(connection_->stream.fd());
  return lingers ? After::linger : After::close;
}

void Session::serve(Connection& first, HandlerWatch& watch) noexcept {
  constexpr int kTurn = 128;
  int served = 0;
  watch_ = &watch;
  for (Connection* connection = &first; connection != nullptr; connection = engine_.next_or_release(*this)) {
    // Other fibers of this worker want to run too, however fast connections are added to the queue.
    if (++served % kTurn == 0) engine_.yield_turn();
    Keeper* const keeper = connection->kept ? connection->keeper : nullptr;
    const Suspended* kept = keeper != nullptr ? keeper->suspended(*connection) : nullptr;
    if (keeper != nullptr && kept == nullptr) {
      serve_kept(*connection);
      continue;
    }
    connection_ = connection;
    watch.meet(*connection, *this);
    begin_ = end_ = seen_ = out_used_ = 0;
    ended_ns_ = 0;
    // A keeper has sent the last answer, and ended this side.
    const bool lingers = connection->owes == Owes::end;
    cut_short_ = lingers;
    broken_ = hurried_ = look_again_ = false;
    if (connection->has_half_head) [[unlikely]]
      take_half_head();
    for (;;) {
      After after = lingers ? After::linger : After::go_on;
      if constexpr (kTls) {
        if (connection->tls != nullptr) after = advance_handshake();
      }
      if (kept != nullptr) after = resume(*keeper, *std::exchange(kept, nullptr));
      if (after == After::go_on) after = run();
      if (after == After::rest) {
        // Once asleep the connection is no longer ours. The time of its last answer need not be read again; by the
        // coarse clock, which says who makes room, no connection may rest from later than now on.
        if (engine_.rest(*connection, ended_ns_ != 0 ? ended_ns_ - kCoarseTickNs : coarse_ns())) break;
        continue;
      }
      if (after == After::detached) return;
      if (after == After::kept) break;
      if (!broken_ && connection->tls == nullptr) static_cast<void>(flush());
      if (after == After::linger && !broken_) linger();
      // Content whose end is the connection's would be taken for whole.
      if (broken_ && ends_by_close()) connection->stream.abandon();
      engine_.close(*connection);
      hold();
      break;
    }
  }
}

void Session::begin_waiting(Direction direction, Owes owes, Deadline deadline) noexcept {
  ended_ns_ = 0;
  engine_.begin_waiting(*connection_, direction, owes, deadline);
}

// Only such waits count against a client: where its handler or this machine is slow it is not to blame.
void Session::begin_content_wait(Direction direction, bool soon, bool keeps_buffers, Deadline deadline) noexcept {
  const bool lent = watch_->lend_place(keeps_buffers);
  connection_->since_ns = coarse_ns() - client_waited_ns_;
  begin_waiting(direction, soon ? Owes::content_soon : lent ? Owes::lent_content : Owes::content, deadline);
}

bool Session::end_waiting() noexcept {
  client_waited_ns_ = coarse_ns() - connection_->since_ns;
  return engine_.end_waiting(*connection_);
}

// linger lets the client read the last answer, or the alert that there is instead of one. Nothing in the buffers is
// needed any more.
void Session::linger() noexcept {
  if (!cut_short_) connection_->stream.shutdown_write();
  const Deadline deadline = Deadline::after(engine_.options.linger_timeout);
  engine_.begin_exchange(*connection_);
  begin_waiting(Direction::readable, Owes::end, deadline);
  if constexpr (kFibers) engine_.offer(*this, false);
  Linger linger;
  const int fd = connection_->stream.fd();
  for (;;) {
    const Linger::Step step = linger.drop(fd);
    if (step == Linger::Step::over || deadline.passed()) break;
    if (step == Linger::Step::waits && !wait(fd, Direction::readable, deadline)) break;
    if (step == Linger::Step::more) engine_.yield_turn();
  }
  static_cast<void>(end_waiting());
}

}  // namespace coir::http
