#include <coir/http/detail/detached.h>

#include <coir/http/exchange.h>

#include "http/connection/stream_log.h"
#include "http/session/engine.h"
#include "http/session/session.h"
#include "socket/slow_peer.h"

namespace coir::http {

std::string_view Detached::sent(Exchange& exchange) noexcept {
  Session& session = Session::of(exchange);
  session.hold();
  return {session.buffers->in + session.body_at_, session.end_ - session.body_at_};
}

std::expected<Detached, Error> Detached::from(Exchange& exchange) noexcept {
  Session& session = Session::of(exchange);
  session.hold();
  if (!session.may_be_kept()) return std::unexpected(Error{ErrorCode::invalid});
  if (session.broken_ || !session.flush()) return std::unexpected(Error{ErrorCode::closed});
  session.told_stream();
  Connection& connection = *session.connection_;
  {
    // A child may call it as its handler begins to wait: the watch of that wait is taken back, and none begins meanwhile.
    const Session::Use use(session);
    // From here on the handler hears of its client, and of the server's stop, by its stream.
    if (session.watch_->end() || session.look_again_) connection.stream.mark_readable();
    connection.stream.rest();
  }
  Detached detached(session.engine_, connection);
  session.detached_ = true;
  // From here on the session may serve others.
  detached.engine_.release(session);
  return detached;
}

Stream& Detached::stream() const noexcept {
  return connection_->stream;
}

std::expected<void, Error> Detached::write(std::string_view bytes, Deadline deadline) noexcept {
  if (is_closed()) return std::unexpected(Error{ErrorCode::closed});
  while (!bytes.empty()) {
    const iovec part = {const_cast<char*>(bytes.data()), bytes.size()};
    const auto sent = write_some_patiently(stream(), {&part, 1}, engine_.options.write_timeout, deadline);
    if (!sent) return std::unexpected(sent.error());
    bytes.remove_prefix(*sent);
  }
  return {};
}

Deadline Detached::write_limit() const noexcept {
  return Deadline::after(engine_.options.write_timeout);
}

void Detached::close() noexcept {
  if (connection_ == nullptr) return;
  engine_.close(*std::exchange(connection_, nullptr));
}

void Detached::abandon() noexcept {
  if (connection_ == nullptr) return;
  end_log(*connection_);
  connection_->stream.abandon();
  engine_.close(*std::exchange(connection_, nullptr));
}

Connection& Detached::release() noexcept {
  return *std::exchange(connection_, nullptr);
}

CancellationToken Detached::stops() const noexcept {
  return engine_.stops.token();
}

}  // namespace coir::http
