// Content of a response on its way to the client. Declared in proxy/forwarding.h.
#include <algorithm>

#include "http/message/characters.h"
#include "http/session/engine.h"
#include "proxy/forward_keeper.h"
#include "proxy/forwarding.h"

namespace coir::http {
namespace {

// After so much without waiting others get their turn.
constexpr std::size_t kRelayedInTurn = 512 * 1024;
// How much of long content is read at a time.
constexpr std::size_t kBulkBytes = 64 * 1024;

}  // namespace

bool Forwarding::is_event_stream() const noexcept {
  return begins_ignoring_case(response.header("Content-Type"), "text/event-stream");
}

void Forwarding::pass_response() noexcept {
  if (response.status == 101) return begin_tunnel();
  lease.hear_keep_alive(response);
  const bool events = is_event_stream();
  if (!begin_response()) return;
  rests_at_once = events;
  relay();
}

void Forwarding::relay() noexcept {
  Buffer bulk;
  std::span<char> bytes = room.subspan(begin, have - begin);
  if (response.end == ContentEnd::none) {
    ended = true;
    strays = !bytes.empty();
  }
  for (std::size_t slice = 0; !ended;) {
    if (!bytes.empty() && !pass_content(bytes)) return;
    if (ended) break;
    if ((slice += bytes.size()) >= kRelayedInTurn) {
      slice = 0;
      session.engine_.yield_turn();
    }
    if (!read_content(bulk)) return;
    bytes = (bulk ? bulk.bytes() : heads()).first(have);
  }
  if (takes_trailers && response.end == ContentEnd::chunked) pass_trailers();
  // Bytes behind a response are nobody's answer.
  lease.give_back(sent_whole && response.keep_alive && !strays && response.end != ContentEnd::close);
}

// read_content reads the next bytes, `have` of them, to the front of `bulk` or of `room`. Pending output to the client is
// sent before any wait. False: nothing more is to be done here.
bool Forwarding::read_content(Buffer& bulk) noexcept {
  if (!bulk && have >= heads().size() / 2 && (response.end != ContentEnd::length || left > heads().size())) {
    if (auto taken = Buffer::take(kBulkBytes)) bulk = std::move(*taken);
  }
  const std::span<char> into = bulk ? bulk.bytes() : heads();
  std::expected<std::size_t, Error> got = std::unexpected(Error{ErrorCode::timed_out});
  if (!stream().drained()) got = stream().read(into, Deadline::now());
  if (!got && got.error().is_late()) {
    if (auto flushed = session.flush(); !flushed) return leave(), false;
    if (!rests_at_once) got = stream().read(into, Deadline::after(std::min(rules.rest_after, rules.idle)));
    if (!got && got.error().is_late()) {
      if (keep()) return false;
      got = stream().read(into, rests_at_once ? Deadline::never() : Deadline::after(rules.idle));
    }
  }
  if (got) {
    have = static_cast<std::uint32_t>(*got);
    return true;
  }
  if (got.error() == ErrorCode::end_of_stream && response.end == ContentEnd::close) {
    ended = true;
    have = 0;
    return true;
  }
  if (got.error() == ErrorCode::cancelled) return leave(), false;
  return cut(got.error() == ErrorCode::timed_out ? ForwardFailure::timeout : ForwardFailure::cut_off), false;
}

// pass_content takes the framing off what has come and writes the content to the client. False: one of the two sides is
// at its end.
bool Forwarding::pass_content(std::span<char> bytes) noexcept {
  std::size_t content = bytes.size();
  if (response.end == ContentEnd::chunked) {
    const std::span<char> trailers = room.last(room.size() / 4);
    const ChunkedResult decoded = decoder.decode(bytes, kResponseChunks, takes_trailers ? trailers : std::span<char>());
    if (decoded.state == ChunkedState::bad) return cut(ForwardFailure::malformed), false;
    content = decoded.data_bytes;
    ended = decoded.state == ChunkedState::done;
    strays = decoded.consumed < bytes.size();
  } else if (response.end == ContentEnd::length) {
    content = static_cast<std::size_t>(std::min<std::uint64_t>(content, left));
    left -= content;
    ended = left == 0;
    strays = content < bytes.size();
  }
  if (exchange.write({bytes.data(), content})) return true;
  return leave(), false;
}

void Forwarding::pass_trailers() noexcept {
  std::string_view rest(room.last(room.size() / 4).data(), decoder.trailer_bytes());
  while (!rest.empty()) {
    const std::string_view line = until(rest, '\r');
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    const std::string_view name = until(line, ':');
    if (!may_trail(name) || is_among(name, rules.response_drops)) continue;
    static_cast<void>(exchange.add_trailer(name, trim(after(line, std::min(name.size() + 1, line.size())))));
  }
}

// cut ends a response that its upstream has not ended, so that the client sees that it is not whole.
void Forwarding::cut(ForwardFailure failure) noexcept {
  lease.failed(UpstreamFault::broken_off);
  note(failure);
  keeper.counters.cut.fetch_add(1, std::memory_order_relaxed);
  static_cast<void>(session.cut_short(Error{ErrorCode::truncated}));
}

// leave leaves the upstream, because the client has left.
void Forwarding::leave() noexcept {
  lease.give_back(false);
  keeper.counters.cancelled.fetch_add(1, std::memory_order_relaxed);
  if (!session.broken_ && session.phase_ == Session::Phase::content) {
    static_cast<void>(session.cut_short(Error{ErrorCode::cancelled}));
  }
}

// keep has the response go on without this fiber. False: it cannot.
bool Forwarding::keep() noexcept {
  return sent_whole && keeper.keep(*this);
}

void Forwarding::begin_tunnel() noexcept {
  if (response.header("Upgrade").empty()) return fail(Error{ErrorCode::protocol});
  const std::string_view behind(room.data() + begin, have - begin);
  ResponseHead& head = exchange.start(101);
  add_fields(head);
  head.fixed("Connection: Upgrade\r\n");
  head.fixed(rules.response_lines);
  if (const auto opened = Keeper::open(exchange, Keeper::Opening::upgrade); !opened) return fail(opened.error());
  keeper.counters.forwarded.fetch_add(1, std::memory_order_relaxed);
  if (!exchange.write(behind) || !keeper.keep(*this)) leave();
}

}  // namespace coir::http
