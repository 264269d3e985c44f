#include <coir/select.h>

#include <charconv>
#include <optional>

#include "http/session/keeper.h"
#include "mcp/server/incoming.h"

namespace coir::mcp {
namespace {

// follower.cpp: a legacy client that comes again, or listens, for incoming.h.

struct Place {
  std::uint32_t stream;
  std::uint32_t event;
};

// parse_place reads an id of an event: the stream's number in its session, and the event's in the stream.
std::optional<Place> parse_place(std::string_view text) noexcept {
  Place place{};
  const char* const end = text.data() + text.size();
  const auto stream = std::from_chars(text.data(), end, place.stream);
  if (stream.ec != std::errc() || stream.ptr == end || *stream.ptr != '-') return std::nullopt;
  const auto event = std::from_chars(stream.ptr + 1, end, place.event);
  if (event.ec != std::errc() || event.ptr != end) return std::nullopt;
  return place;
}

// follow sends what a stream has recorded behind the place, and what it records from then on.
void follow(ServerCore& core, http::Detached& connection, Session& session, RecordedStream& stream,
            std::uint32_t after) noexcept {
  for (;;) {
    stream.changed.reset();
    Text event({}, core.options.max_stream_bytes + 64);
    if (const std::uint32_t number = read_recorded(stream, after, event)) {
      if (!connection.write(event.view())) return;
      after = number;
      continue;
    }
    if (stream.finished.load(std::memory_order_acquire) || session.ended.load(std::memory_order_acquire)) return;
    const auto won = select(
        {Case::opened(stream.changed), Case::cancelled(connection.stops()), Case::after(core.options.keep_alive)});
    if (!won || won->index == 1) return;
    if (won->index == 2 && !connection.write(":\n\n")) return;
  }
}

void resume(ServerCore& core, http::Exchange& exchange, Session& session, const Place& place) noexcept {
  RecordedStream* const stream = core.sessions.find_stream(session, place.stream);
  // An answer that was not kept would be waited for in vain.
  const bool forgotten =
      stream != nullptr && stream->finished.load(std::memory_order_acquire) && !has_recorded(*stream, place.event);
  if (forgotten) core.sessions.release_stream(session, stream);
  if (stream == nullptr || forgotten) {
    return answer_plain(exchange, 400, {}, kInvalidRequest, "the stream is not remembered any more");
  }
  exchange.start(200).fixed("Content-Type: text/event-stream\r\nCache-Control: no-store\r\nX-Accel-Buffering: no\r\n");
  if (http::Keeper::open(exchange, http::Keeper::Opening::content)) {
    if (auto detached = http::Detached::from(exchange)) follow(core, *detached, session, *stream, place.event);
  }
  core.sessions.release_stream(session, stream);
}

}  // namespace

void answer_get(ServerCore& core, http::Exchange& exchange, Session& session) noexcept {
  if (!accepted_types(exchange.request()).events) return exchange.respond_status(406);
  const std::string_view last = exchange.request().header("Last-Event-ID");
  std::optional<Place> place;
  if (!last.empty()) {
    place = parse_place(last);
    if (!place) return answer_plain(exchange, 400, {}, kInvalidRequest, "Last-Event-ID is none of this server's");
    if (place->stream != 0) return resume(core, exchange, session, *place);
  }
  // The session that the listener refers to is released with it.
  Session* const referred = core.sessions.find(session.id_text(), session.who);
  if (referred == nullptr) return exchange.respond_status(404);
  Listener* const one = core.listeners.make_listener({}, referred, &referred->interests);
  if (one == nullptr) {
    core.sessions.release(referred);
    return exchange.respond_status(503, "Retry-After: 5\r\n");
  }
  // The earlier stream is retired, so that it takes nothing of this.
  if (place) core.listeners.resume(session.interests, place->event);
  core.listeners.listen(exchange, one);
}

}  // namespace coir::mcp
