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
#include <coir/http/server_event.h>

#include <cstddef>
#include <cstdint>
#include <expected>

#if COIR_CLIENT
#include <coir/http/event_client.h>
#endif
#if !COIR_NO_ASYNC
#include <coir/http/event_stream.h>
#endif

namespace coir::http {

class EventKeeper;

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
//   ticks.publish({.data = "21.5", .id = "1042"});
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

  // The call answers a request with the stream; the handler returns after it. GET is answered 200, HEAD 200 without a
  // stream, any other method 405, and one subscriber too many 503 with Retry-After.
  void operator()(Exchange& exchange) noexcept;

  std::size_t subscribers() const noexcept;
  // dropped is how many subscribers were disconnected because they fell behind the history.
  std::uint64_t dropped() const noexcept;

 private:
  EventKeeper* const keeper_;  // null: there was no memory
};

}  // namespace coir::http
