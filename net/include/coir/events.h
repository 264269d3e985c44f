#pragma once

// Server-sent events (WHATWG HTML, 9.2), as a browser's EventSource receives them. A server sends them from an EventHub,
// to thousands of subscribers, or from an EventStream, to one client by the handler's own fiber. An EventClient receives
// them.
//
//   coir::http::EventHub ticks;
//   auto app = coir::http::routes(coir::http::get<"/events">(ticks));
//   ...
//   static_cast<void>(ticks.publish({.data = "21.5", .id = "1042"}));   // from any fiber or thread

#include <coir/config.h>

#if !COIR_STREAMS
#error "this build of coir has no event streams: configure it with -DCOIR_STREAMS=ON"
#endif

#include <coir/deadline.h>
#include <coir/error.h>
#include <coir/http/exchange.h>
#include <coir/http/wire/server_event.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <string_view>
#include <utility>

#if COIR_CLIENT
#include <coir/http/client.h>
#endif
#if !COIR_NO_ASYNC
#include <coir/http/detail/detached.h>
#include <coir/select.h>
#endif

namespace coir::http {

class EventKeeper;
struct MetricsPart;

// EventHubOptions sets how much an event hub remembers and how long it waits for its subscribers.
struct EventHubOptions {
  // The size of the history, which holds the latest events, encoded. A subscriber that falls further behind is
  // disconnected; a subscriber that comes back gets at most this much. Allocated and charged at construction.
  std::uint32_t history_bytes = 64 * 1024;
  std::uint32_t history_events = 256;
  // Whether a subscriber without Last-Event-ID gets the whole history first, and not only later events.
  bool replay = false;
  // The event that a subscriber gets first if the history no longer holds the event of its Last-Event-ID. The rest of the
  // history follows. At most 1,024 bytes, encoded.
  ServerEvent missed = {.data = "", .type = "missed", .id = {}, .retry_ms = {}};
  // How long a disconnected subscriber waits before it reconnects; 0: the subscriber decides.
  std::chrono::milliseconds retry{0};
  // After this long without an event each subscriber gets a comment, so that intermediaries keep the connection open and a
  // client that has gone is noticed; 0: never.
  std::chrono::milliseconds keep_alive{15'000};
  // How long the kernel waits for a client that acknowledges nothing before it ends the connection; 0: the kernel decides,
  // about 15 minutes.
  std::chrono::milliseconds vanished_after{30'000};
  std::size_t max_subscribers = SIZE_MAX;  // a further subscriber is answered 503
};

// EventHub sends events to any number of subscribers. A published event is stored once, in a bounded history, and a
// subscriber is a position in it.
//
//   EventHub ticks({.history_events = 100});
//   auto app = routes(get<"/events">(ticks));
//   ...
//   if (auto sent = ticks.publish({.data = "21.5", .id = "1042"}); !sent) complain(sent.error());
//
// Between two events a subscriber is the record of its connection: no fiber, no buffer, no queue. A subscriber that falls
// behind the history is disconnected, so that it resumes by Last-Event-ID and misses no event without noticing. When the
// server stops, its subscribers are disconnected.
//
// An event hub serves one server at a time. Either may be destroyed first: a hub disconnects its subscribers when it is
// destroyed. That happens on a fiber or after the server's run, and with no call of the hub in progress. Without fibers
// only the program's thread may use a hub, and publish itself sends.
class EventHub {
 public:
  // The constructor allocates the history. If there is no memory for it, publish returns no_memory and requests are
  // answered 503. Options that are wrong end the process with a line: a history of 0, or a `missed` that cannot be sent.
  explicit EventHub(const EventHubOptions& options = {}) noexcept;
  EventHub(const EventHub&) = delete;
  EventHub& operator=(const EventHub&) = delete;
  ~EventHub();

  // publish stores `event` in the history and has it sent to every subscriber, by a fiber of the hub. It never waits for a
  // subscriber. A subscriber cannot resume after an event without an id. From any fiber or thread.
  // Errors: invalid (a NUL or a line end in the id, a line end in the type), limit (larger than the history), no_memory
  // (the constructor got none).
  [[nodiscard]] std::expected<void, Error> publish(const ServerEvent& event) noexcept;

  // disconnect_all forgets the history and has every subscriber disconnected, as one that has fallen behind, which
  // `dropped` counts: for streams that the program no longer permits. From any fiber or thread.
  void disconnect_all() noexcept;

  // The call answers a request with the stream; the handler returns after it. GET is answered 200, HEAD 200 without a
  // stream, any other method 405, and one subscriber too many 503 with Retry-After.
  void operator()(Exchange& exchange) noexcept;

  std::size_t subscribers() const noexcept;
  // dropped is how many subscribers were disconnected because they fell behind the history.
  std::uint64_t dropped() const noexcept;

 private:
  EventKeeper* const keeper_;  // null: there was no memory
};

// metrics_part is for Metrics::add of coir/http/metrics.h.
MetricsPart metrics_part(EventHub& hub) noexcept;

#if !COIR_NO_ASYNC

struct EventStreamOptions {
  // How long a client that has lost the connection waits before it connects anew; 0: as it likes.
  std::chrono::milliseconds retry{0};
  // pause sends a comment after so long without an event; 0: never.
  std::chrono::milliseconds keep_alive{15'000};
  // How long the kernel waits for a client that acknowledges nothing before it gives the connection up; 0: as it likes,
  // a quarter of an hour.
  std::chrono::milliseconds vanished_after{30'000};
};

// EventStream (event_stream.cpp) sends events to one client, from the handler's own fiber. Many clients that get the same
// events cost less with an EventHub.
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
  // that were added to the head do not fit), closed (the client is gone); those of Stream::write.
  [[nodiscard]] static std::expected<EventStream, Error> open(Exchange& exchange,
                                                              const EventStreamOptions& options = {}) noexcept;

  EventStream(EventStream&&) noexcept = default;
  EventStream& operator=(EventStream&&) = delete;
  // The destructor ends the stream and its connection. A client of the browser's kind then connects anew.
  ~EventStream() = default;

  // send sends an event whole. It waits for a client that is slow until the deadline, and as long as the client takes
  // something within ServerOptions::write_timeout. An event that was sent in part ends the stream.
  // Errors: invalid (a NUL or a line end in the id, a line end in the type; nothing was sent), closed (the client has
  // hung up, the server stops, or the stream has ended before), timed_out (the client is too slow: the stream has
  // ended), cancelled; those of Stream::write.
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

  Detached detached_;
  std::chrono::milliseconds keep_alive_;
  Deadline keep_alive_at_;
};

#endif

#if COIR_CLIENT

namespace detail {
struct EventFollowing;
}  // namespace detail

struct EventClientOptions {
  // As in ClientRequest; all that is pointed to outlives the EventClient. At most 12 fields.
  std::string_view url;
  std::span<const RequestField> fields = {};
  const Address* to = nullptr;
  std::string_view last_id = {};  // to resume behind, known from an earlier run
  // The longest event with its ids, and the longest line that is no comment; up to 1 MiB less 1 KB.
  std::size_t max_event_bytes = 3 * 1024;
  // The pause before the first attempt to connect anew, unless the stream names another, of 5 minutes at most. Behind an
  // attempt that brought no event it is 500 ms at least, unless `pause` is less, and doubles each time up to the longest.
  // To each up to a quarter is added.
  std::chrono::milliseconds pause{1'000};
  std::chrono::milliseconds longest_pause{300'000};
};

// EventClient (event_client.cpp) follows a stream of events (WHATWG HTML, 9.2), as a browser's EventSource does: when
// the stream ends or breaks it connects anew after a pause, and asks to go on behind the last event that came.
//
//   auto events = EventClient::create(client, {.url = "http://board/events"});
//   while (auto event = events->next()) show(event->data);
//
// A stream that is silent for longer than the client's Timeouts::between_bytes counts as broken: servers send comments.
// One fiber or thread at a time. Memory: one buffer for max_event_bytes beside those of the request.
class EventClient {
 public:
  // create makes ready and does not connect yet. `client` outlives it. Errors: no_memory, limit (too many fields, too
  // large an event), invalid (last_id does not fit).
  [[nodiscard]] static std::expected<EventClient, Error> create(Client& client,
                                                                const EventClientOptions& options) noexcept;

  EventClient(EventClient&& other) noexcept : following_(std::exchange(other.following_, nullptr)) {}
  EventClient& operator=(EventClient&& other) noexcept {
    std::swap(following_, other.following_);
    return *this;
  }
  ~EventClient();

  // next returns the next event, valid until it is called again. Broken connections are not told. After timed_out and
  // cancelled it may be called again, and misses nothing; after anything else it returns the same error for ever. On a fiber
  // a connection is made by a fiber of its own, with 16 KiB of stack, which goes on when the deadline passes: the next call
  // waits for the same attempt. On a plain thread the deadline ends the attempt: let it be longer than a connection takes.
  // Errors: timed_out, cancelled; end_of_stream (the server wants no more of us: 204); those of
  // Response::expect_success (any other status than 200); protocol (the content is no event stream); limit (an event is
  // too long); invalid and unsupported (the URL or a field); untrusted; those of Response::read, as far as no other
  // connection can mend them.
  [[nodiscard]] std::expected<ServerEvent, Error> next(Deadline deadline = Deadline::never()) noexcept;

  // last_id is the id of the last event that came whole, empty for none. attempts counts the connections that were
  // tried.
  std::string_view last_id() const noexcept;
  std::uint64_t attempts() const noexcept;

 private:
  explicit EventClient(detail::EventFollowing* following) noexcept : following_(following) {}

  detail::EventFollowing* following_;
};

#endif

}  // namespace coir::http
