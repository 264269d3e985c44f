#pragma once

#include <coir/deadline.h>
#include <coir/error.h>
#include <coir/http/exchange.h>
#include <coir/http/server_event.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <utility>

namespace coir::http {

class FeedKeeper;

// FeedOptions is what a feed remembers and how patient it is.
struct FeedOptions {
  // The latest events, encoded: so much a subscriber may be behind before it is disconnected, and so much it finds when
  // it comes back. Taken and charged at creation.
  std::uint32_t history_bytes = 64 * 1024;
  std::uint32_t history_events = 256;
  // A subscriber that names no Last-Event-ID gets what is remembered, not only what is published from now on.
  bool replay = false;
  // Sent to a subscriber that resumes behind an event that is remembered no more, before all that is.
  ServerEvent missed = {.data = "", .type = "missed", .id = {}, .retry_ms = {}};
  // How long a subscriber waits before it connects anew; 0: as it likes.
  std::chrono::milliseconds retry{0};
  // A comment goes to every subscriber when nothing was published for so long, so that what lies between keeps the
  // connection open and a client that is gone is noticed; 0: never.
  std::chrono::milliseconds keep_alive{15'000};
  // How long the kernel waits for a client that acknowledges nothing before it gives the connection up; 0: as it likes,
  // a quarter of an hour.
  std::chrono::milliseconds vanished_after{30'000};
  std::size_t max_subscribers = SIZE_MAX;  // one more is answered 503
};

// Feed sends events to any number of subscribers: what is published lies once in a bounded history, and a subscriber is
// a place in it. Server-sent events (WHATWG HTML, 9.2), as a browser's EventSource takes them.
//
//   auto feed = Feed::create({.history_events = 100});
//   ...
//   void temperature(Exchange& exchange) { feed.subscribe(exchange); }    // and return
//   ...
//   feed.publish({.data = "21.5", .id = "1042"});                         // any fiber or thread
//
// A subscriber between two events is the record of its connection: no fiber, no buffer, no queue. One that is slower
// than the history is long is disconnected, so that it resumes by Last-Event-ID and misses nothing in silence. While
// the server stops, subscribers are closed.
//
// A feed serves the subscribers of one server, and is destroyed after that has stopped. Without fibers a feed is used
// by the program's thread alone, and publish sends by itself.
class Feed {
 public:
  // create takes memory for the history. Errors: no_memory, invalid (a history of nothing, or a `missed` that cannot be
  // sent), limit (a `missed` of more than 1 KB).
  [[nodiscard]] static std::expected<Feed, Error> create(const FeedOptions& options = {}) noexcept;

  Feed(Feed&& other) noexcept : keeper_(std::exchange(other.keeper_, nullptr)) {}
  Feed& operator=(Feed&&) = delete;
  ~Feed();

  // publish sends `event` to every subscriber and remembers it. Never waits for any of them: a fiber of the feed's does
  // the sending. Events without an id can be followed, but not resumed behind. From any fiber or thread.
  // Errors: invalid (a NUL or a line end in the id, a line end in the type), limit (larger than all of the history).
  [[nodiscard]] std::expected<void, Error> publish(const ServerEvent& event) noexcept;

  // subscribe answers a request with the stream; the handler returns at once afterwards. A GET is answered 200, HEAD
  // likewise but without a stream, another method 405, and a subscriber for whom there is no room 503 with Retry-After.
  // From a handler.
  void subscribe(Exchange& exchange) noexcept;
  void operator()(Exchange& exchange) noexcept { subscribe(exchange); }

  std::size_t subscribers() const noexcept;
  // fallen_off is how many subscribers were disconnected because they were too slow.
  std::uint64_t fallen_off() const noexcept;

 private:
  explicit Feed(FeedKeeper* keeper) noexcept : keeper_(keeper) {}

  FeedKeeper* keeper_;
};

}  // namespace coir::http
