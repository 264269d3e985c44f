#pragma once

#include <coir/port/needs_fibers.h>

#include <coir/cancellation.h>
#include <coir/error.h>
#include <coir/net/stream.h>

#include <expected>
#include <string_view>
#include <utility>

namespace coir::http {

class Engine;
class Exchange;
struct Connection;

// Detached is a connection with which a handler's own fiber goes on, behind the head of its answer, as long as it
// likes: its session serves others meanwhile, so that the fiber costs its stack and the record alone. Owned by that
// fiber, and closed with this object. Move-only.
//
//   handler:  exchange.start(...), Keeper::open(...)
//             copy Detached::sent(exchange)              the session's memory goes
//             auto detached = Detached::from(exchange);  nothing of the exchange may be used from here on
//
// A server that stops waits for it. `stops` tells of the stop: nothing else ends a wait that the handler begins from here
// on, and the client's hang-up is told by the stream alone.
class Detached {
 public:
  // sent is what the client has sent behind the request already.
  static std::string_view sent(Exchange& exchange) noexcept;

  // from detaches the connection once the head is sent. Errors: invalid (the response has not been ended by
  // Keeper::open, or is to HEAD, or content of the request is unread), closed (the client is gone). The exchange ends
  // as usual then.
  [[nodiscard]] static std::expected<Detached, Error> from(Exchange& exchange) noexcept;

  Detached(Detached&& other) noexcept
      : engine_(other.engine_), connection_(std::exchange(other.connection_, nullptr)) {}
  Detached& operator=(Detached&&) = delete;
  ~Detached() { close(); }

  Stream& stream() const noexcept;
  // write sends all of `bytes`. It waits until the deadline, and as long as the client takes something within
  // ServerOptions::write_timeout. Errors: as Stream::write, closed if this is.
  [[nodiscard]] std::expected<void, Error> write(std::string_view bytes,
                                                 Deadline deadline = Deadline::never()) noexcept;
  // write_limit is write_timeout from now.
  Deadline write_limit() const noexcept;
  // close ends the connection; abandon, so that its client does not take what it has got for whole. Idempotent.
  void close() noexcept;
  void abandon() noexcept;
  bool is_closed() const noexcept { return connection_ == nullptr; }
  // stops is cancelled when the server begins to stop.
  CancellationToken stops() const noexcept;
  // release leaves the connection, and its end by Engine::close, to the caller.
  Connection& release() noexcept;

 private:
  Detached(Engine& engine, Connection& connection) noexcept : engine_(engine), connection_(&connection) {}

  Engine& engine_;
  Connection* connection_;
};

}  // namespace coir::http
