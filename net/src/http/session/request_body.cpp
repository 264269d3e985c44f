#include <errno.h>
#include <string.h>

#include <algorithm>

#include "http/connection/connection.h"
#include "http/session/engine.h"
#include "http/session/session.h"
#include "http/text/characters.h"
#include "socket/kernel.h"

namespace coir::http {

void Session::begin_body(std::size_t head_bytes) noexcept {
  head_end_ = body_at_ = begin_ + static_cast<std::uint32_t>(head_bytes);
  body_left_ = request_.framing == Framing::length ? request_.content_length : 0;
  body_done_ = request_.framing == Framing::none || (request_.framing == Framing::length && body_left_ == 0);
  body_begun_ = false;
  max_body_ = engine_.options.limits.max_body;
  body_timeout_ = engine_.options.body_timeout;
  body_rate_ = engine_.options.body_rate;
  body_waited_ns_ = 0;
  // Chunks of an earlier request, maybe of another client, end with it, trailers included.
  chunks_ = ChunkedContent();
}

// begin_taking does what comes before the first piece of content.
std::expected<void, Error> Session::begin_taking() noexcept {
  if (body_begun_) return {};
  body_begun_ = true;
  // A client that has begun to send the content does not wait for 100.
  if (!request_.expects_continue || body_at_ != end_ || phase_ != Phase::none) return {};
  if (auto sent = append("HTTP/1.1 100 Continue\r\n\r\n"); !sent) return sent;
  engine_.counters.responses[0].fetch_add(1, std::memory_order_relaxed);
  return {};
}

// body_deadline is for how long a wait for content that begins now may last. Only such waits count: where the handler is
// slow the client is not to blame.
Deadline Session::body_deadline(std::int64_t now_ns) const noexcept {
  const std::chrono::nanoseconds timeout = body_timeout_;
  std::chrono::nanoseconds left = timeout;
  if (body_rate_ != 0) {
    const std::uint64_t received =
        request_.framing == Framing::chunked ? chunks_.content_bytes() : request_.content_length - body_left_;
    const std::chrono::milliseconds earned(received * 1000 / body_rate_);
    // Milliseconds, as nanoseconds do not hold the time that the longest content earns.
    const auto waited =
        std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::nanoseconds(body_waited_ns_));
    if (earned < waited) left = std::max(timeout - (waited - earned), std::chrono::nanoseconds(0));
  }
  return Deadline::at_ns(now_ns + left.count());
}

std::expected<std::size_t, Error> Session::take_body(char* into, std::size_t size) noexcept {
  hold();
  if (body_done_) return std::unexpected(Error{ErrorCode::end_of_stream});
  if (fault_ != 0 || broken_) return std::unexpected(Error{ErrorCode::closed});
  if (auto begun = begin_taking(); !begun) return std::unexpected(begun.error());
  return request_.framing == Framing::chunked ? take_chunked(into, size) : take_fixed(into, size);
}

std::expected<std::size_t, Error> Session::take_fixed(char* into, std::size_t size) noexcept {
  std::size_t taken;
  if (body_at_ < end_) {
    taken = static_cast<std::size_t>(std::min<std::uint64_t>(end_ - body_at_, body_left_));
    if (into != nullptr) {
      taken = std::min(taken, size);
      memcpy(into, buffers->in + body_at_, taken);
    }
    body_at_ += static_cast<std::uint32_t>(taken);
  } else {
    // Straight to its place, and never past the end of the content.
    body_at_ = end_ = head_end_;
    if (into == nullptr) {
      into = buffers->in + head_end_;
      size = kInputBytes - head_end_;
    }
    const auto got = read_for_body({into, static_cast<std::size_t>(std::min<std::uint64_t>(size, body_left_))});
    if (!got) return got;
    taken = *got;
  }
  body_left_ -= taken;
  body_done_ = body_left_ == 0;
  return taken;
}

std::expected<std::size_t, Error> Session::take_chunked(char* into, std::size_t size) noexcept {
  std::span<char> raw(buffers->in + body_at_, end_ - body_at_);
  const auto taken =
      chunks_.take({into, size}, raw, {buffers->in + head_end_, kInputBytes - head_end_}, {.max_body = max_body_},
                   buffers->trailers, [&](std::span<char> window) { return read_for_body(window); });
  body_at_ = static_cast<std::uint32_t>(raw.data() - buffers->in);
  end_ = body_at_ + static_cast<std::uint32_t>(raw.size());
  if (taken) return taken;
  if (chunks_.is_delivered()) {
    body_done_ = true;
  } else if (chunks_.status() != 0) {
    fault_ = static_cast<std::uint16_t>(chunks_.status());
    return std::unexpected(Error{fault_ == 413 ? ErrorCode::limit : ErrorCode::invalid});
  }
  return taken;
}

// trailer looks through what the decoder has kept: "Name: value\r", one behind the other.
std::string_view Session::trailer(std::string_view name) const noexcept {
  if (!body_done_) return {};
  std::string_view rest(buffers->trailers, chunks_.trailer_bytes());
  while (!rest.empty()) {
    const std::string_view line = until(rest, '\r');
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    const std::string_view found = until(line, ':');
    if (equals_ignoring_case(found, name)) return trim(after(line, std::min(found.size() + 1, line.size())));
  }
  return {};
}

Session::Use::Use(Session& session) noexcept : session_(session) {
  bool noticed = false;
  pauses_ = session.watch_->pause(noticed);
  if (noticed) session.look_again_ = true;
}

Session::Use::~Use() {
  if (pauses_) session_.watch_->resume();
}

std::expected<std::size_t, Error> Session::read_for_body(std::span<char> into) noexcept {
  if (auto flushed = flush(); !flushed) return std::unexpected(flushed.error());
  const Use use(*this);
  if (look_again_) [[unlikely]]
    connection_->stream.mark_readable();
  auto got = connection_->stream.read(into, Deadline::now());
  if (!got && got.error().is_late() && only_looks_) return got;
  if (!got && got.error() == ErrorCode::timed_out) {
    const std::int64_t began_ns = monotonic_ns();
    const Deadline deadline = body_deadline(began_ns);
    // `into` may lie in the buffers.
    begin_content_wait(Direction::readable, false, true, deadline);
    got = connection_->stream.read(into, deadline);
    if (!end_waiting()) got = std::unexpected(Error{ErrorCode::timed_out});
    body_waited_ns_ += monotonic_ns() - began_ns;
    hold();
  }
  if (!got) return body_failed(got.error());
  connection_->transferred += *got;
  engine_.counters.bytes_received.fetch_add(*got, std::memory_order_relaxed);
  return got;
}

// await_content waits until content can be read, or the descriptor `beside`, if that is not negative; it only looks where it
// may not wait. True: reading tells what there is, an error too; that `beside` got ready meanwhile may be news that no later
// wait hears. False: `beside` may be ready. Errors: timed_out (`patience` is over, and nothing has come; with a `fault_` the
// time for the content is over).
std::expected<bool, Error> Session::await_content(int beside, bool may_wait, Deadline patience) noexcept {
  hold();
  if (auto begun = begin_taking(); !begun) return std::unexpected(begun.error());
  if (body_done_ || fault_ != 0 || broken_ || body_at_ < end_ || chunks_.has_some()) return true;
  if (auto flushed = flush(); !flushed) return std::unexpected(flushed.error());
  Stream& client = connection_->stream;
  const auto is_there = [&]() -> std::expected<bool, Error> {
    if (client.secure() && !client.drained()) return true;
    const auto seen = kernel::peek(client.fd());
    if (seen == -EAGAIN) return false;
    // A read may find nothing, and would wait for the client alone.
    if (seen < 0) return body_failed(kernel::connection_error(static_cast<int>(-seen)));
    client.mark_readable();
    return true;
  };
  // The watch takes an edge that comes before it is paused, and no later wait would hear that: look behind it.
  const Use use(*this);
  if (const auto there = is_there(); !there || *there || !may_wait) return there;
  const Awaited either[] = {{client.fd(), Direction::readable}, {beside, Direction::readable}};
  const std::int64_t began_ns = monotonic_ns();
  const Deadline deadline = body_deadline(began_ns);
  begin_content_wait(Direction::readable, patience < deadline, false, deadline);
  // It may be woken by the other side alone: the client's stream stays drained until is_there has looked.
  const auto ready = wait_several(std::span(either, beside < 0 ? 1 : 2), std::min(deadline, patience));
  const bool may_go_on = end_waiting();
  body_waited_ns_ += monotonic_ns() - began_ns;
  hold();
  if (may_go_on && !ready && ready.error().is_late() && patience < deadline) return std::unexpected(ready.error());
  if (!may_go_on || (!ready && ready.error() == ErrorCode::timed_out)) return body_failed(Error{ErrorCode::timed_out});
  if (!ready) return std::unexpected(ready.error());
  return is_there();
}

std::unexpected<Error> Session::body_failed(Error error) noexcept {
  if (error == ErrorCode::timed_out) {
    fault_ = 408;
  } else if (error == ErrorCode::end_of_stream) {
    // A client that has only shut down its own side can still read why.
    fault_ = 400;
    error = Error{ErrorCode::closed};
  } else {
    broken_ = true;
  }
  return std::unexpected(error);
}

// skip_body reads the rest of the content and drops it, if that is not much; the deadline bounds it. False: there is
// too much, or it did not arrive whole.
bool Session::skip_body() noexcept {
  if (body_left_ > kMostUnwanted) unwanted_ = true;
  for (std::uint64_t skipped = 0; !body_done_ && !unwanted_;) {
    const auto taken = take_body(nullptr, 0);
    if (!taken && !body_done_) return false;
    if (taken && (skipped += *taken) > kMostUnwanted) unwanted_ = true;
  }
  return body_done_;
}

}  // namespace coir::http
