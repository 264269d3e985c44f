// How a request is sent to its upstream. Declared in proxy/forwarding.h.
#include <string.h>

#include <algorithm>

#include "http/session/engine.h"
#include "http/text/characters.h"
#include "proxy/forwarding.h"

namespace coir::http {
namespace {

using namespace std::chrono_literals;

// An upstream that knows no Expect is silent: then its content is sent without its leave.
constexpr auto kLeaveWait = 1s;

constexpr std::size_t kUploadBytes = 16 * 1024;

// A client that has been slow before most likely is again, and others may want its place.
constexpr auto kBeforeRestAgain = 2ms;

// A client that sends less than this within its patience is slow, however often it sends.
constexpr std::size_t kLeastInTime = 4096;

// A piece of this size is a packet of a client that has more: the next one is waited for.
constexpr std::size_t kPacket = 512;

}  // namespace

Forwarding::Outcome Forwarding::send() noexcept {
  if (auto sent = send_head(); !sent || got_head) return sent;
  if (!sent_whole) {
    if (request.expects_continue && !unrepeatable) {
      if (auto left_to = await_leave(Deadline::after(kLeaveWait)); !left_to || got_head) return left_to;
    }
    return end_upload();
  }
  sent_whole = true;
  return {};
}

// end_upload sends the rest of the content.
Forwarding::Outcome Forwarding::end_upload() noexcept {
  if (auto sent = upload(); !sent || got_head || suspended) return sent;
  now_ns = monotonic_ns();
  sent_whole = true;
  return {};
}

// send_head sends the head, and in the same call what has come of content with a length. Content that has come whole
// stays with the session until the response begins, so that it can be sent again.
Forwarding::Outcome Forwarding::send_head() noexcept {
  session.hold();
  std::string_view head;
  while ((head = write_request_head(room)).empty()) {
    if (auto grown = grow(0); !grown)
      return grown.error() == ErrorCode::limit ? std::unexpected(Error{ErrorCode::invalid}) : grown;
  }
  std::string_view content;
  if (request.framing == Framing::length && !unrepeatable) {
    const std::uint64_t there = session.end_ - session.body_at_;
    content = {session.buffers->in + session.body_at_, static_cast<std::size_t>(std::min(there, session.body_left_))};
  }
  const bool whole = session.body_done_ || (request.framing == Framing::length && content.size() == session.body_left_);
  if (!content.empty() && !whole) {
    if (auto begun = session.begin_taking(); !begun) return begun;
    session.body_at_ += static_cast<std::uint32_t>(content.size());
    session.body_left_ -= content.size();
    unrepeatable = true;
  }
  if (auto sent = send_beginning(head, content, {rules.idle}); !sent) return sent;
  if (!content.empty()) now_ns = monotonic_ns();
  // An upstream that answers early has the rest stay unsent: it would be read as the next request of the connection.
  sent_whole = whole && !got_head;
  return {};
}

// upload passes content on as it comes. In chunks, each piece has its size in front. If the client sends nothing or little for
// a while, the exchange rests.
Forwarding::Outcome Forwarding::upload() noexcept {
  auto taken = Buffer::take(kUploadBytes);
  if (!taken) return std::unexpected(taken.error());
  const bool chunked = request.framing == Framing::chunked;
  const std::span<char> place =
      taken->bytes().subspan(kBeforeChunk, taken->size() - kBeforeChunk - kBehindChunk - kLastChunk.size());
  unrepeatable = true;
  Deadline rests_at = Deadline::after(was_slow ? kBeforeRestAgain : kBeforeRest);
  std::size_t came = 0;
  bool may_rest = true;
  for (bool last = false; !last && !got_head;) {
    const auto awaited = await_piece(*this, may_rest ? rests_at : Deadline::never());
    if (!awaited && awaited.error().is_late() && !client_failed()) {
      if (suspend_upload()) return {};
      may_rest = false;
      continue;
    }
    if (!awaited) return std::unexpected(awaited.error());
    may_rest = true;
    if (!*awaited) break;
    const auto got = read_piece(place);
    if (!got && got.error().is_late() && !client_failed()) continue;
    if (!got && !session.body_done_) return std::unexpected(got.error());
    std::string_view piece(place.data(), got ? *got : 0);
    const std::size_t size = piece.size();
    last = session.body_done_ || (chunked && session.chunks_.is_delivered());
    if (chunked) {
      if (!piece.empty()) piece = frame_chunk(place.data(), piece.size());
      if (last && !session.holds_trailers()) {
        memcpy(const_cast<char*>(piece.data()) + piece.size(), kLastChunk.data(), kLastChunk.size());
        piece = {piece.data(), piece.size() + kLastChunk.size()};
      }
    }
    if (auto sent = send_content(piece, {rules.idle}); !sent) return sent;
    // The time that the upstream has taken is not the client's.
    if ((came += size) >= kLeastInTime) {
      came = 0;
      was_slow = false;
      rests_at = Deadline::after(kBeforeRest);
    } else if (size >= kPacket) {
      rests_at = std::max(rests_at, Deadline::after(kBeforeRestAgain));
    }
  }
  // A wait for the last of the content may have taken the edge of what the upstream has said meanwhile.
  stream().mark_readable();
  // The session's own end of the content, where it has only been looked at.
  if (chunked && !session.body_done_ && !got_head) static_cast<void>(exchange.read_body(place));
  return chunked && !got_head && session.holds_trailers() ? upload_trailers(place) : Outcome();
}

// upload_trailers sends the fields behind chunked content that may stand there.
Forwarding::Outcome Forwarding::upload_trailers(std::span<char> place) noexcept {
  const std::string_view kept(session.buffers->trailers, session.chunks_.trailer_bytes());
  return send_content(write_last_chunk(place, kept, rules.request_drops), {rules.idle});
}

}  // namespace coir::http
