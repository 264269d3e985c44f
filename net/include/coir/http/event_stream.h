#pragma once

#include <coir/port/needs_fibers.h>

#include <coir/deadline.h>
#include <coir/error.h>
#include <coir/http/detail/detached.h>
#include <coir/http/exchange.h>
#include <coir/http/server_event.h>
#include <coir/select.h>

#include <expected>
#include <span>
#include <string_view>
#include <utility>

namespace coir::http {

struct EventStreamOptions {
  // How long a client that has lost the connection waits before it connects anew; 0: as it likes.
  std::chrono::milliseconds retry{0};
  // pause sends a comment after so long without an event; 0: never.
  std::chrono::milliseconds keep_alive{15'000};
  // How long the kernel waits for a client that acknowledges nothing before it gives the connection up; 0: as it likes,
  // a quarter of an hour.
  std::chrono::milliseconds vanished_after{30'000};
};

// EventStream is a stream of server-sent events (WHATWG HTML, 9.2) that a handler sends from its own fiber. Many
// clients that are to get the same events cost less with an EventHub (coir/events.h).
//
//   void countdown(Exchange& exchange) {
//     auto stream = EventStream::open(exchange);
//     if (!stream) return;                                     // answered already
//     for (int left = 10; left > 0; --left) {
//       if (!stream->send({.data = digits(left)})) return;     // the client has hung up, or the server stops
//       if (!stream->pause(Deadline::after(1s))) return;
//     }
//   }                                                          // the end of the stream
//
// While the handler goes on it holds its stack and the record of its connection: the session, with its buffers, serves
// others. Owned by one fiber, the handler's, and destroyed by the time the handler returns. Move-only.
//
// From `open` on the stream's calls alone tell the handler of a client that hangs up, and of the server's stop: its
// other waits are no longer ended by either. A handler that waits for something else than time selects on `stopping`
// too, or bounds the wait and calls keep_alive.
class EventStream {
 public:
  // open answers the request with the head of a stream and its first byte. From then on the exchange, and all that was
  // read from it, is gone: a handler that wants a field, such as Last-Event-ID, copies it before. A request by HEAD
  // gets the head alone and one by another method than GET 405; then, as after every error, the handler just returns.
  // Errors: invalid (not a GET, content of the request is unread, or a response was begun before), limit (the fields
  // that were added to the head do not fit), closed (the client is gone).
  [[nodiscard]] static std::expected<EventStream, Error> open(Exchange& exchange,
                                                              const EventStreamOptions& options = {}) noexcept;

  EventStream(EventStream&&) noexcept = default;
  EventStream& operator=(EventStream&&) = delete;
  // The destructor ends the stream and its connection. A client of the browser's kind then connects anew.
  ~EventStream() = default;

  // send sends an event whole. It waits for a client that is slow until the deadline, and at most for as long as
  // ServerOptions::write_timeout. An event that was sent in part ends the stream.
  // Errors: invalid (a NUL or a line end in the id, a line end in the type; nothing was sent), closed (the client has
  // hung up, the server stops, or the stream has ended before), timed_out (the client is too slow: the stream has
  // ended), cancelled, and those of the connection.
  [[nodiscard]] std::expected<void, Error> send(const ServerEvent& event,
                                                Deadline deadline = Deadline::never()) noexcept;

  // keep_alive sends a comment, which clients drop. A handler that waits for something else than time calls it now and
  // then; pause does so by itself. Errors: as send.
  [[nodiscard]] std::expected<void, Error> keep_alive(Deadline deadline = Deadline::never()) noexcept;

  // pause waits until `until`, while comments keep the connection open. It ends at once when the client hangs up or the
  // server stops. Errors: as send, without invalid; timed_out as well when an enclosing scope's deadline passes, which
  // leaves the stream open.
  [[nodiscard]] std::expected<void, Error> pause(Deadline until) noexcept;

  // stopping is a case for a select of coir/select.h: ready once the server stops.
  Case stopping() const noexcept { return Case::cancelled(detached_.stops()); }

 private:
  EventStream(Detached&& detached, const EventStreamOptions& options) noexcept
      : detached_(std::move(detached)), keep_alive_(options.keep_alive) {}

  std::expected<void, Error> write(std::string_view bytes, Deadline deadline) noexcept;
  std::expected<void, Error> hear() noexcept;
  std::expected<std::size_t, Error> read_while_serving(std::span<char> into, Deadline deadline) noexcept;
  std::unexpected<Error> end(Error error) noexcept;
  Deadline patience(Deadline deadline) const noexcept;

  Detached detached_;
  std::chrono::milliseconds keep_alive_;
  Deadline keep_alive_at_;
};

}  // namespace coir::http
