#include <string.h>
#include <time.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "http/connection/connection.h"
#include "http/session/engine.h"
#include "http/session/session.h"
#include "socket/file_pages.h"
#include "socket/slow_peer.h"
#include "socket/write_all.h"

namespace coir::http {
namespace {

// The least room in which a head is begun; one that does not fit is answered 500.
constexpr std::size_t kHeadRoom = 2048;
// After so much without waiting others get their turn.
constexpr std::size_t kFileSlice = 512 * 1024;

}  // namespace

// send_patiently waits, in a Use, as long as the client goes on taking something.
template <class Attempt>
std::expected<std::size_t, Error> Session::send_patiently(Attempt attempt) noexcept {
  auto sent = attempt(Deadline::now());
  if (!sent && sent.error() == ErrorCode::timed_out) {
    const bool waits_on = patience_ == patience_.zero();
    const Deadline latest = waits_on ? Deadline::never() : Deadline::after(patience_);
    const auto wait = [&](Deadline deadline) -> std::expected<std::size_t, Error> {
      // The content that is sent may be in the buffers.
      begin_content_wait(Direction::writable, !waits_on, true, deadline);
      auto sent_then = attempt(deadline);
      const bool may_go_on = end_waiting();
      hold();
      if (!may_go_on) return std::unexpected(Error{ErrorCode::closed});
      return sent_then;
    };
    sent = while_taking(connection_->stream.fd(), engine_.options.write_timeout, latest, wait);
  }
  if (sent) connection_->transferred += *sent;
  return sent;
}

ResponseHead& Session::start(int status) noexcept {
  hold();
  head_ = ResponseHead({buffers->out + kOutputBytes, 0});
  if (phase_ == Phase::content || broken_) return head_;
  if (phase_ == Phase::none && !body_done_ && !body_begun_) {
    if (request_.expects_continue) {
      // The client may or may not send the content now, so that nobody knows where the next request begins.
      keep_ = false;
    } else if (!skip_body() && unwanted_) {
      keep_ = false;
    }
  }
  phase_ = Phase::none;
  if (fault_ != 0 || (output_room() < kHeadRoom && !flush())) return head_;
  phase_ = Phase::head;
  status_ = static_cast<std::uint16_t>(status);
  head_ = ResponseHead({buffers->out + out_used_, output_room()});
  head_.start(status, buffers->date.line(now()));
  if (added_ <= sizeof buffers->added_fields) {
    head_.fixed({buffers->added_fields, added_});
  } else {
    head_ = ResponseHead({buffers->out + kOutputBytes, 0});
  }
  return head_;
}

void Session::add_fields(std::string_view lines) noexcept {
  hold();
  if (phase_ == Phase::content) return;
  if (lines.size() > sizeof buffers->added_fields - std::min<std::size_t>(added_, sizeof buffers->added_fields)) {
    added_ = sizeof buffers->added_fields + 1;
    return;
  }
  memcpy(buffers->added_fields + added_, lines.data(), lines.size());
  added_ += static_cast<std::uint16_t>(lines.size());
}

std::expected<void, Error> Session::begin_content(Content kind, std::uint64_t bytes) noexcept {
  hold();
  if (phase_ != Phase::head)
    return std::unexpected(Error{fault_ != 0 || broken_ ? ErrorCode::closed : ErrorCode::invalid});
  if (engine_.stopping()) keep_ = false;
  if (kind == Content::fixed) head_.content_length(bytes);
  if (kind == Content::chunked) {
    if (request_.minor == 0) {
      kind = Content::until_close;
      keep_ = false;
    } else {
      head_.fixed("Transfer-Encoding: chunked\r\n");
    }
  }
  if (kind == Content::until_close || kind == Content::upgrade) keep_ = false;
  if (kind != Content::upgrade) head_.connection(keep_, request_.minor);
  const std::string_view head = head_.finish();
  if (head.empty()) {
    phase_ = Phase::none;
    return std::unexpected(Error{ErrorCode::limit});
  }
  out_used_ += static_cast<std::uint32_t>(head.size());
  phase_ = Phase::content;
  content_kind_ = kind;
  content_left_ = bytes;
  added_ = 0;
  engine_.counters.responses[std::clamp(status_ / 100, 1, 5) - 1].fetch_add(1, std::memory_order_relaxed);
  return {};
}

void Session::answer(int status, std::string_view type, std::string_view content, std::string_view fields) noexcept {
  ResponseHead& head = start(status);
  if (!type.empty()) head.field("Content-Type", type);
  head.fixed(fields);
  if (begin_content(Content::fixed, content.size())) static_cast<void>(write(content));
}

void Session::answer_status(int status, std::string_view fields) noexcept {
  const bool has_room = added_ + fields.size() <= Exchange::kAddedFieldBytes;
  if (error_look_ != nullptr && *error_look_ && status >= 400 && phase_ != Phase::content && fault_ == 0 && has_room) {
    if (!fields.empty()) add_fields(fields);
    fields = {};
    Exchange exchange(*this);
    const Exchange::ErrorLook look = *std::exchange(error_look_, nullptr);
    look(exchange, status);
    if (phase_ == Phase::content) return;
  }
  char text[64];
  char* end = write_decimal(text, static_cast<std::uint64_t>(status));
  *end++ = ' ';
  const std::string_view reason = reason_phrase(status).substr(0, sizeof text - 8);
  memcpy(end, reason.data(), reason.size());
  end += reason.size();
  *end++ = '\n';
  answer(status, "text/plain; charset=utf-8", {text, end}, fields);
}

std::expected<void, Error> Session::write(std::string_view content) noexcept {
  hold();
  if (broken_) return std::unexpected(Error{ErrorCode::closed});
  if (phase_ != Phase::content) return std::unexpected(Error{fault_ != 0 ? ErrorCode::closed : ErrorCode::invalid});
  if (content.empty()) return {};
  if (content_kind_ == Content::empty) return cut_short(Error{ErrorCode::invalid});
  if (content_kind_ == Content::fixed) {
    if (content.size() > content_left_) return cut_short(Error{ErrorCode::invalid});
    content_left_ -= content.size();
  }
  if (head_only_) return {};
  content_sent_ += content.size();
  if (content_kind_ != Content::chunked) return append(content);

  char size_line[18];
  const std::string_view size = write_chunk_size(content.size(), size_line);
  if (size.size() + content.size() + 2 <= output_room()) {
    static_cast<void>(append(size));
    static_cast<void>(append(content));
    return append("\r\n");
  }
  iovec parts[] = {{buffers->out, out_used_},
                   {const_cast<char*>(size.data()), size.size()},
                   {const_cast<char*>(content.data()), content.size()},
                   {const_cast<char*>("\r\n"), 2}};
  return send(parts, false);
}

// A thread of the pool reads cold pages into the buffers, and this wait offers the place like any other: the buffers count as
// lent meanwhile, so that they stay.
std::expected<void, Error> Session::send_file(int file, std::uint64_t offset, std::uint64_t count) noexcept {
  hold();
  if (broken_) return std::unexpected(Error{ErrorCode::closed});
  if (phase_ != Phase::content || content_kind_ != Content::fixed || count > content_left_) {
    return std::unexpected(Error{ErrorCode::invalid});
  }
  if (head_only_) return {};
  if (count <= output_room()) {
    while (count > 0) {
      const bool lent = std::exchange(lends_scratch_, true);
      const ssize_t got = read_file(file, buffers->out + out_used_, static_cast<std::size_t>(count), offset);
      lends_scratch_ = lent;
      if (got <= 0)
        return cut_short(got < 0 ? Error::from_errno(static_cast<int>(-got)) : Error{ErrorCode::end_of_stream});
      out_used_ += static_cast<std::uint32_t>(got);
      offset += static_cast<std::uint64_t>(got);
      count -= static_cast<std::uint64_t>(got);
      content_left_ -= static_cast<std::uint64_t>(got);
      content_sent_ += static_cast<std::uint64_t>(got);
    }
    return {};
  }
  // A child's file is sent in one use: between two, the server's stop ends its handler's wait, and so the child.
  std::optional<Use> whole;
  if (!watch_->is_owners()) whole.emplace(*this);
  // The head waits for the first bytes of the file.
  if (auto flushed = flush(true); !flushed) return flushed;
  std::size_t loaded = 0;
  for (std::size_t slice = 0; count > 0;) {
    if (loaded == 0) {
      const auto next = static_cast<std::size_t>(std::min<std::uint64_t>(count, kFileSlice));
      const bool lent = std::exchange(lends_scratch_, true);
      loaded = load_pages(file, offset, next, buffers->out);
      lends_scratch_ = lent;
    }
    const auto sent = [&] {
      const Use use(*this);
      return send_patiently(
          [&](Deadline deadline) { return connection_->stream.send_file(file, offset, loaded, deadline); });
    }();
    if (!sent && sent.error() == ErrorCode::end_of_stream) return cut_short(sent.error());
    if (!sent) return broken(sent.error());
    engine_.counters.bytes_sent.fetch_add(*sent, std::memory_order_relaxed);
    offset += *sent;
    count -= *sent;
    content_left_ -= *sent;
    content_sent_ += *sent;
    loaded -= *sent;
    if ((slice += *sent) >= kFileSlice) {
      slice = 0;
      engine_.yield_turn();
    }
  }
  return {};
}

std::expected<void, Error> Session::append(std::string_view bytes) noexcept {
  hold();
  if (bytes.size() <= output_room()) {
    memcpy(buffers->out + out_used_, bytes.data(), bytes.size());
    out_used_ += static_cast<std::uint32_t>(bytes.size());
    return {};
  }
  iovec parts[] = {{buffers->out, out_used_}, {const_cast<char*>(bytes.data()), bytes.size()}};
  return send(parts, false);
}

std::expected<void, Error> Session::flush(bool more_follows) noexcept {
  hold();
  if (out_used_ == 0) return {};
  iovec part = {buffers->out, out_used_};
  return send({&part, 1}, more_follows);
}

std::expected<void, Error> Session::send(std::span<iovec> parts, bool more_follows) noexcept {
  out_used_ = 0;
  const Use use(*this);
  for (take_sent(parts, 0); !parts.empty();) {
    const auto sent = send_patiently(
        [&](Deadline deadline) { return connection_->stream.write_some(parts, deadline, more_follows); });
    if (!sent && sent.error().is_late() && patience_ != patience_.zero()) {
      unsent_ = 0;
      for (const iovec& part : parts) unsent_ += part.iov_len;
      return std::unexpected(sent.error());
    }
    if (!sent) return broken(sent.error());
    engine_.counters.bytes_sent.fetch_add(*sent, std::memory_order_relaxed);
    take_sent(parts, *sent);
  }
  return {};
}

std::unexpected<Error> Session::broken(Error error) noexcept {
  broken_ = true;
  if (error == ErrorCode::closed) watch_->lost();
  return std::unexpected(error);
}

// cut_short ends an answer that cannot be completed. The connection is in order: what was answered before still goes
// out.
std::unexpected<Error> Session::cut_short(Error error) noexcept {
  cut_short_ = true;
  return broken(error);
}

std::int64_t Session::now() noexcept {
  if (now_ == 0) {
    timespec now;
    ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
    now_ = now.tv_sec;
  }
  return now_;
}

}  // namespace coir::http
