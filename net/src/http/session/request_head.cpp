// How the heads of requests are read, and what answers one that cannot be. Declared in http/session/session.h.
#include <string.h>

#include "http/connection/connection.h"
#include "http/connection/half_head.h"
#include "http/message/head_error.h"
#include "http/session/engine.h"
#include "http/session/session.h"

namespace coir::http {

std::expected<std::size_t, Error> Session::read_input(Deadline deadline) noexcept {
  if (look_again_) [[unlikely]]
    connection_->stream.mark_readable();
  auto got = connection_->stream.read({buffers->in + end_, kInputBytes - end_}, deadline);
  if (!got) return got;
  end_ += static_cast<std::uint32_t>(*got);
  engine_.counters.bytes_received.fetch_add(*got, std::memory_order_relaxed);
  return got;
}

// compact moves what has not been answered to the front of the buffer.
void Session::compact() noexcept {
  memmove(buffers->in, buffers->in + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
}

std::expected<std::size_t, Error> Session::read_rest_of_head() noexcept {
  if (auto flushed = flush(); !flushed) return std::unexpected(Error{ErrorCode::closed});
  if (begin_ > 0) compact();
  begin_waiting(Direction::readable, Owes::head, head_deadline_);
  if constexpr (kFibers) engine_.offer(*this, true);
  auto got = read_input(head_deadline_);
  const bool may_go_on = end_waiting();
  hold();
  if (!may_go_on) return std::unexpected(Error{ErrorCode::timed_out});
  return got;
}

// read_what_is_there reads more of a head without waiting.
std::expected<std::size_t, Error> Session::read_what_is_there() noexcept {
  if (begin_ > 0) compact();
  if (look_again_) [[unlikely]]
    connection_->stream.mark_readable();
  if (connection_->stream.drained()) return std::unexpected(Error{ErrorCode::timed_out});
  return read_input(Deadline::now());
}

// take_half_head goes on with what came of a head before the connection rested: all of it has been seen.
void Session::take_half_head() noexcept {
  end_ = seen_ = static_cast<std::uint32_t>(HalfHead::take(*connection_, buffers->in));
  if (end_ == 0) return;
  const std::chrono::nanoseconds patience = engine_.options.header_timeout;
  head_deadline_ = Deadline::at_ns(connection_->since_ns + patience.count());
}

// refuse answers a request that could not be understood, or did not arrive. The bytes behind it have no known meaning.
void Session::refuse(int status) noexcept {
  request_ = Request();
  chunks_ = ChunkedContent();
  phase_ = Phase::none;
  fault_ = 0;
  now_ = 0;
  added_ = 0;
  error_look_ = &engine_.options.on_error;
  content_sent_ = 0;
  waited_ns = client_waited_ns_ = 0;
  forget_notes();
  began_ns_ = monotonic_ns();
  keep_ = false;
  head_only_ = asks_for_head({buffers->in + begin_, end_ - begin_});
  body_done_ = true;
  answer_status(status, {});
  end_content();
  told_end();
}

bool Engine::rest_with_head(Connection& connection, std::string_view head) noexcept {
  if (stopping() || connection.stream.midway() || !HalfHead::keep(connection, head)) return false;
  if (rest(connection, connection.since_ns)) return true;
  HalfHead::drop(connection);
  return false;
}

}  // namespace coir::http
