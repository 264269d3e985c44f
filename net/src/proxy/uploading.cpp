// How a request is sent to its upstream. Declared in proxy/forwarding.h.
#include <coir/wait.h>
#include <string.h>

#include <algorithm>

#include "http/message/characters.h"
#include "http/session/engine.h"
#include "proxy/forwarding.h"

namespace coir::http {
namespace {

using namespace std::chrono_literals;

// An upstream that knows no Expect is silent: then its content is sent without its leave.
constexpr auto kLeaveWait = 1s;

constexpr std::size_t kUploadBytes = 16 * 1024;
constexpr std::size_t kBefore = 18;  // a chunk's size with its line end
constexpr std::size_t kBehind = 2;

}  // namespace

Forwarding::Outcome Forwarding::send() noexcept {
  if (auto sent = send_head(); !sent || got_head) return sent;
  if (!sent_whole) {
    if (request.expects_continue && !unrepeatable) {
      if (auto left_to = await_leave(); !left_to || got_head) return left_to;
    }
    if (auto sent = upload(); !sent || got_head) return sent;
    now_ns = monotonic_ns();
  }
  sent_whole = true;
  return {};
}

// send_head sends the head, and in the same call what has come of content with a length. Content that has come whole
// stays with the session until the response begins, so that it can be sent again.
Forwarding::Outcome Forwarding::send_head() noexcept {
  std::string_view head = write_request_head(room);
  if (head.empty()) {
    if (auto grown = grow(2 * Session::kMaxHeadBytes, 0); !grown) return grown;
    head = write_request_head(room);
    if (head.empty()) return std::unexpected(Error{ErrorCode::invalid});
  }
  std::string_view content;
  if (request.framing == Framing::length && !unrepeatable) {
    const std::uint64_t there = session.end_ - session.body_at_;
    content = {session.in_ + session.body_at_, static_cast<std::size_t>(std::min(there, session.body_left_))};
  }
  const bool whole = session.body_done_ || (request.framing == Framing::length && content.size() == session.body_left_);
  if (!content.empty() && !whole) {
    if (auto begun = session.begin_taking(); !begun) return begun;
    session.body_at_ += static_cast<std::uint32_t>(content.size());
    session.body_left_ -= content.size();
    unrepeatable = true;
  }
  while (!head.empty()) {
    iovec parts[] = {{const_cast<char*>(head.data()), head.size()},
                     {const_cast<char*>(content.data()), content.size()}};
    const auto sent = upstream().write_some(std::span(parts, content.empty() ? 1 : 2), within(rules.idle));
    if (!sent) return std::unexpected(sent.error());
    sent_any = true;
    const std::size_t of_head = std::min(*sent, head.size());
    head.remove_prefix(of_head);
    content.remove_prefix(*sent - of_head);
  }
  if (!content.empty()) {
    if (auto sent = send_all(content); !sent) return sent;
    now_ns = monotonic_ns();
  }
  sent_whole = whole;
  return {};
}

// send_all sends content, and stops where a final response comes before its end: the upstream wants no more of it.
// `room` is free for what the upstream says, as the request's head has been sent.
Forwarding::Outcome Forwarding::send_all(std::string_view bytes) noexcept {
  Deadline in_time = Deadline::after(rules.idle);
  while (!bytes.empty() && !got_head) {
    const iovec part = {const_cast<char*>(bytes.data()), bytes.size()};
    const auto sent = upstream().write_some({&part, 1}, Deadline::now());
    if (sent) {
      bytes.remove_prefix(*sent);
      in_time = Deadline::after(rules.idle);
      continue;
    }
    if (!(sent.error() == ErrorCode::timed_out) || sent.error().scope != 0) return std::unexpected(sent.error());
    const int fd = upstream().fd();
    const Awaited either[] = {{fd, Direction::readable}, {fd, Direction::writable}};
    if (auto ready = wait_several(either, in_time); !ready) return ready;
    upstream().mark_writable();
    if (auto heard = hear(); !heard) return heard;
  }
  return {};
}

// hear takes what the upstream has said while content is sent, if it has said anything.
Forwarding::Outcome Forwarding::hear() noexcept {
  upstream().mark_readable();
  if (auto read = read_more(Deadline::now()); !read) {
    return read.error() == ErrorCode::timed_out && read.error().scope == 0 ? Outcome() : read;
  }
  if (const auto final = took_head(); !final) return std::unexpected(final.error());
  return {};
}

// await_leave waits for 100, or a while. A final response is the answer.
Forwarding::Outcome Forwarding::await_leave() noexcept {
  const Deadline patience = Deadline::after(kLeaveWait);
  while (!got_leave && !got_head) {
    if (auto read = read_more(patience); !read) {
      return read.error() == ErrorCode::timed_out && read.error().scope == 0 ? Outcome() : read;
    }
    if (const auto final = took_head(); !final) return std::unexpected(final.error());
  }
  return {};
}

// upload passes content on as it comes. In chunks, each piece has its size in front.
Forwarding::Outcome Forwarding::upload() noexcept {
  auto taken = Buffer::take(kUploadBytes);
  if (!taken) return std::unexpected(taken.error());
  const bool chunked = request.framing == Framing::chunked;
  const std::span<char> place = taken->bytes().subspan(kBefore, taken->size() - kBefore - kBehind - kLastChunk.size());
  unrepeatable = true;
  for (bool last = false; !last && !got_head;) {
    const auto there = session.await_content(upstream().fd());
    // The wait may have taken the news of both.
    upstream().mark_readable();
    if (!there) return std::unexpected(there.error());
    if (!*there) {
      if (auto heard = hear(); !heard) return heard;
      continue;
    }
    const auto got = exchange.read_body(place);
    if (!got && !session.body_done_) return std::unexpected(got.error());
    std::string_view piece(place.data(), got ? *got : 0);
    last = session.body_done_ || (chunked && session.chunks_.is_delivered());
    if (chunked) {
      char* from = place.data();
      char* to = from + piece.size();
      if (!piece.empty()) {
        char line[kBefore];
        const std::string_view size = write_chunk_size(piece.size(), line);
        from -= size.size();
        memcpy(from, size.data(), size.size());
        memcpy(to, "\r\n", kBehind);
        to += kBehind;
      }
      if (last && !session.holds_trailers()) {
        memcpy(to, kLastChunk.data(), kLastChunk.size());
        to += kLastChunk.size();
      }
      piece = {from, to};
    }
    if (auto sent = send_all(piece); !sent) return sent;
  }
  // A wait for the last of the content may have taken the edge of what the upstream has said meanwhile.
  upstream().mark_readable();
  // The session's own end of the content, where it has only been looked at.
  if (chunked && !session.body_done_ && !got_head) static_cast<void>(exchange.read_body(place));
  return chunked && !got_head && session.holds_trailers() ? upload_trailers() : Outcome();
}

// upload_trailers sends the fields behind chunked content that may stand there.
Forwarding::Outcome Forwarding::upload_trailers() noexcept {
  ResponseHead lines({room.data(), room.size() / 4});
  lines.fixed("0\r\n");
  std::string_view rest(session.trailers_, session.chunks_.trailer_bytes());
  while (!rest.empty()) {
    const std::string_view line = until(rest, '\r');
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    const std::string_view name = until(line, ':');
    if (!may_trail(name) || is_among(name, rules.request_drops)) continue;
    lines.field(name, trim(after(line, std::min(name.size() + 1, line.size()))));
  }
  const std::string_view text = lines.finish();
  // `room` holds them, so that nothing may be heard before they are sent.
  std::string_view unsent = text.empty() ? kLastChunk : text;
  while (!unsent.empty()) {
    const iovec part = {const_cast<char*>(unsent.data()), unsent.size()};
    const auto sent = upstream().write_some({&part, 1}, Deadline::after(rules.idle));
    if (!sent) return std::unexpected(sent.error());
    unsent.remove_prefix(*sent);
  }
  return {};
}

}  // namespace coir::http
