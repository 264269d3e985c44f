// Content of a response on its way to the client. Declared in proxy/forwarding.h.
#include <coir/wait.h>
#include <errno.h>

#include <algorithm>

#include "http/session/engine.h"
#include "http/text/characters.h"
#include "proxy/forward_keeper.h"
#include "proxy/forwarding.h"
#include "socket/kernel.h"
#include "socket/write_all.h"

namespace coir::http {
namespace {

// After so much without waiting others get their turn.
constexpr std::size_t kRelayedInTurn = 512 * 1024;
// How much of long content is read at a time.
constexpr std::size_t kBulkBytes = 64 * 1024;
// A socket to which little was written takes so much at once.
constexpr std::size_t kLeastPeeked = 8 * 1024;
// Content that is read where the unsent is kept fits, with the session's output in front, into a buffer of this size.
constexpr std::size_t kKeptBytes = 16 * 1024;
constexpr std::size_t kBeforeKept = Session::kOutputBytes + 64;

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
    relayed.whole = true;
    relayed.strays = !bytes.empty();
  }
  for (std::size_t slice = 0; !relayed.whole;) {
    if (!bytes.empty() && !pass_content(bytes)) return;
    if (relayed.whole) break;
    if ((slice += bytes.size()) >= kRelayedInTurn) {
      slice = 0;
      session.engine_.yield_turn();
    }
    if (!read_content(bulk)) return;
    bytes = (bulk ? bulk.bytes() : heads()).first(have);
  }
  if (takes_trailers && response.end == ContentEnd::chunked) pass_trailers();
  // Bytes behind a response are nobody's answer.
  lease.give_back(sent_whole && response.keep_alive && !relayed.strays && response.end != ContentEnd::close);
}

// may_peek tells whether what the client does not take can stay in the upstream's socket. The last bytes of content with a
// length fit into the client's, and a short event costs fewer system calls when it is read.
bool Forwarding::may_peek() const noexcept {
  if (!sent_whole || rests_at_once || keeps_unsent()) return false;
  return response.end != ContentEnd::length || relayed.left > kLeastPeeked;
}

// read_content reads the next bytes, `have` of them, to the front of `bulk` or of `room`, or peeks at them. Pending output to
// the client is sent before any wait. False: nothing more is to be done here.
bool Forwarding::read_content(Buffer& bulk) noexcept {
  if (!bulk && have >= heads().size() / 2 && (response.end != ContentEnd::length || relayed.left > heads().size())) {
    if (auto taken = Buffer::take(keeps_unsent() ? kKeptBytes : kBulkBytes)) bulk = std::move(*taken);
  }
  std::span<char> into = bulk ? bulk.bytes() : heads();
  if (keeps_unsent()) into = into.first(std::min(into.size(), kKeptBytes - kBeforeKept));
  peeked = may_peek();
  std::expected<std::size_t, Error> got = std::unexpected(Error{ErrorCode::timed_out});
  if (peeked || !stream().drained()) got = look(into, Deadline::now());
  if (!got && got.error().is_late()) {
    if (!pass_output()) return false;
    if (!rests_at_once) got = look(into, Deadline::after(std::min(rules.rest_after, rules.idle)));
    if (!got && got.error().is_late()) {
      if (keep()) return false;
      got = look(into, rests_at_once ? Deadline::never() : Deadline::after(rules.idle));
    }
  }
  if (got) {
    have = static_cast<std::uint32_t>(*got);
    return true;
  }
  if (got.error() == ErrorCode::end_of_stream && response.end == ContentEnd::close) {
    relayed.whole = true;
    have = 0;
    return true;
  }
  if (got.error() == ErrorCode::cancelled) return leave(), false;
  return cut(got.error() == ErrorCode::timed_out ? ForwardFailure::timeout : ForwardFailure::cut_off), false;
}

// look reads, or peeks where `peeked`. Errors: those of Stream::read.
std::expected<std::size_t, Error> Forwarding::look(std::span<char> into, Deadline until) noexcept {
  if (!peeked) return stream().read(into, until);
  for (;;) {
    const ssize_t got = kernel::peek(stream().fd(), into.data(), into.size());
    if (got > 0) return static_cast<std::size_t>(got);
    if (got == 0) return std::unexpected(Error{ErrorCode::end_of_stream});
    if (got == -EINTR) continue;
    if (got != -EAGAIN) return std::unexpected(kernel::connection_error(static_cast<int>(-got)));
    if (auto ready = wait(stream().fd(), Direction::readable, until); !ready) return std::unexpected(ready.error());
  }
}

// pass_content takes the framing off what has come and writes the content to the client. False: one of the two sides is
// at its end, or the response goes on without this fiber.
bool Forwarding::pass_content(std::span<char> bytes) noexcept {
  RelayedContent seen = relayed;
  const auto found = seen.unframe(bytes, takes_trailers ? trailers() : std::span<char>());
  if (!found) return cut(ForwardFailure::malformed), false;
  if (peeked) return pass_peeked(seen, bytes, *found);
  relayed = seen;
  return pass_read(bytes, *found);
}

// pass_read passes on content that has been read. If the client takes nothing for a while, what is unsent is kept, and the
// response goes on without this fiber.
bool Forwarding::pass_read(std::span<char> bytes, std::size_t found) noexcept {
  const std::size_t before = session.out_used_;
  if (sent_whole) session.patience_ = before_rest();
  const auto sent = exchange.write({bytes.data(), found});
  session.patience_ = {};
  if (sent) return true;
  if (session.broken_ || !sent.error().is_late()) return leave(), false;
  char line[OwedFraming::kMost];
  const bool in_chunks = session.content_kind_ == Session::Content::chunked;
  const std::string_view front = in_chunks ? write_chunk_size(found, line) : std::string_view();
  iovec parts[] = {{session.buffers->out, before},
                   {const_cast<char*>(front.data()), front.size()},
                   {bytes.data(), found},
                   {const_cast<char*>(kEndOfChunks.data()), in_chunks ? 2u : 0u}};
  return send_or_keep(parts, in_chunks && relayed.whole && !takes_trailers ? kLastChunk.size() : 0);
}

// pass_output does so for what the session has put together.
bool Forwarding::pass_output() noexcept {
  iovec part = {session.buffers->out, session.out_used_};
  if (sent_whole) session.patience_ = before_rest();
  const auto sent = session.flush();
  session.patience_ = {};
  if (sent) return true;
  if (session.broken_ || !sent.error().is_late()) return leave(), false;
  return send_or_keep({&part, 1}, 0);
}

// send_or_keep goes on with `parts`, of which the last `unsent_` bytes have not been sent. Behind what is kept of them are `behind`
// bytes that follow the last part in memory, and that the session would write by itself. True: all of the parts are sent.
bool Forwarding::send_or_keep(std::span<iovec> parts, std::size_t behind) noexcept {
  std::size_t all = 0;
  for (const iovec& part : parts) all += part.iov_len;
  take_sent(parts, all - session.unsent_);
  parts.back().iov_len += behind;
  if (keeper.keep(*this, parts) != nullptr) {
    session.content_sent_ -= std::min<std::uint64_t>(session.content_sent_, session.unsent_);
    return false;
  }
  parts.back().iov_len -= behind;
  return session.send(parts, false) ? true : (leave(), false);
}

// pass_peeked passes on content that lies in the upstream's socket still. If the client takes nothing of it for a while, the
// response goes on without this fiber, and what is unsent stays where it is.
bool Forwarding::pass_peeked(const RelayedContent& seen, std::span<char> bytes, std::size_t found) noexcept {
  // In front of this content there is to be nothing but its framing.
  if (!pass_output()) return false;
  session.patience_ = before_rest();
  auto sent = exchange.write({bytes.data(), found});
  if (sent) sent = session.flush();
  session.patience_ = {};
  if (!sent && !session.broken_) {
    const bool in_chunks = session.content_kind_ == Session::Content::chunked;
    char line[OwedFraming::kMost];
    std::string_view front = in_chunks ? write_chunk_size(found, line) : std::string_view();
    const std::string_view behind = in_chunks ? kEndOfChunks : std::string_view();
    const std::size_t before = front.size() + found + (in_chunks ? 2 : 0) - session.unsent_;
    if (ForwardPair* const pair = keeper.keep(*this)) {
      const std::string_view end = behind.substr(0, seen.whole ? behind.npos : 2);
      const std::size_t taken = pair->owed.took(before, front, found, end, in_chunks ? found : 0);
      session.content_sent_ -= found - taken;
      pair->content.advance(seen, pair->lease.stream().fd(), found, taken, bytes);
      return false;
    }
    iovec parts[] = {{const_cast<char*>(front.data()), front.size()},
                     {bytes.data(), found},
                     {const_cast<char*>(behind.data()), in_chunks ? 2u : 0u}};
    std::span<iovec> left(parts);
    take_sent(left, before);
    sent = session.send(left, false);
  }
  if (!sent) return leave(), false;
  relayed.advance(seen, stream().fd(), found, found, bytes);
  return !relayed.broken ? true : (cut(ForwardFailure::cut_off), false);
}

void Forwarding::pass_trailers() noexcept {
  std::string_view rest(trailers().data(), relayed.decoder.trailer_bytes());
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
  return sent_whole && keeper.keep(*this) != nullptr;
}

void Forwarding::begin_tunnel() noexcept {
  const auto is_sound = [](const Header& field) {
    return !equals_ignoring_case(field.name, "Upgrade") || is_tunnel(field.value);
  };
  if (response.header("Upgrade").empty() || !std::ranges::all_of(response.headers, is_sound)) {
    return fail(Error{ErrorCode::protocol});
  }
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
