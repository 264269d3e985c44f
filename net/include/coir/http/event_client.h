#pragma once

#include <coir/http/client.h>
#include <coir/http/server_event.h>

#if !COIR_STREAMS
#error "this build of coir has no event streams: configure it with -DCOIR_STREAMS=ON"
#endif

namespace coir::http {

namespace detail {
struct EventFollowing;
}  // namespace detail

struct EventClientOptions {
  // As in ClientRequest; all that is pointed to outlives the EventClient. At most 12 fields.
  std::string_view url;
  std::span<const RequestField> fields;
  const Address* to = nullptr;
  std::string_view last_id;  // to resume behind, known from an earlier run
  // The longest event with its ids, and the longest line that is no comment; up to 1 MiB less 1 KB.
  std::size_t max_event_bytes = 3 * 1024;
  // The pause before the first attempt to connect anew, unless the stream names another, of 5 minutes at most. Behind an
  // attempt that brought no event it is 500 ms at least, unless `pause` is less, and doubles each time up to the longest.
  // To each up to a quarter is added.
  std::chrono::milliseconds pause{1'000};
  std::chrono::milliseconds longest_pause{300'000};
};

// EventClient follows a stream of events (WHATWG HTML, 9.2), as a browser's EventSource does: when the stream ends or
// breaks it connects anew after a pause, and asks to go on behind the last event that came.
//
//   auto events = EventClient::create(client, {.url = "http://board/events"});
//   while (auto event = events->next()) handle(*event);
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
  // cancelled it may be called again, and misses nothing; after anything else it returns the same error for ever.
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

}  // namespace coir::http
