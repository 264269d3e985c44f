// The reading side of a WebSocket: messages are assembled, pings and the peer's close frame answered, silence noticed.
#include <coir/cancel_scope.h>
#include <coir/wait.h>
#include <string.h>

#include <algorithm>

#include "base/turn.h"
#include "socket/linger.h"
#include "websocket/close_payload.h"
#include "websocket/websocket_state.h"

namespace coir::http {
namespace {

constexpr std::size_t kFirstInput = 4096;    // between messages most are small
constexpr std::size_t kLargeInput = 16'384;  // in the middle of one

// has_come tells whether a time has passed. Deadline::now() has not: it takes all that is there.
bool has_come(Deadline deadline) noexcept {
  return deadline.ns() > 0 && deadline.passed();
}

std::int64_t time_after(std::int64_t ns, std::chrono::milliseconds span) noexcept {
  return ns + std::chrono::nanoseconds(span).count();
}

}  // namespace

std::expected<WebSocketMessage, Error> WebSocket::State::receive(Deadline deadline) noexcept {
  if (in_pieces) return std::unexpected(Error{ErrorCode::invalid});
  for (bool again = false;; again = true) {
    // A message that has begun has a deadline of its own.
    const bool late_first = collects && message_deadline < deadline;
    if (again && has_come(late_first ? message_deadline : deadline)) {
      if (late_first) return fail(CloseCode::policy_violation, ErrorCode::truncated);
      return std::unexpected(Error{ErrorCode::timed_out});
    }
    const auto piece = next_piece(late_first ? message_deadline : deadline);
    if (!piece) {
      if (piece.error().is_late() && late_first) {
        return fail(CloseCode::policy_violation, ErrorCode::truncated);
      }
      return std::unexpected(piece.error());
    }
    if (piece->begins && piece->ends) return WebSocketMessage{piece->text, piece->bytes};
    if (piece->begins) {
      collects = true;
      message_bytes = 0;
      message_deadline = Deadline::after(options.message_timeout);
    }
    if (auto kept = append(piece->bytes); !kept) {
      return kept.error() == ErrorCode::limit ? fail(CloseCode::too_big, ErrorCode::limit)
                                              : fail(CloseCode::try_again_later, ErrorCode::no_memory);
    }
    if (piece->ends) {
      collects = false;
      delivered = true;
      return WebSocketMessage{piece->text, {message.data(), message_bytes}};
    }
  }
}

// append keeps a piece of the message at hand. Errors: no_memory, limit.
std::expected<void, Error> WebSocket::State::append(std::string_view piece) noexcept {
  while (message.size() - message_bytes < piece.size()) {
    if (!message) {
      auto taken = Buffer::take(piece.size());
      if (!taken) return std::unexpected(taken.error());
      message = std::move(*taken);
    } else if (auto grown = message.grow(message_bytes); !grown) {
      return grown;
    }
  }
  if (!piece.empty()) memcpy(message.data() + message_bytes, piece.data(), piece.size());
  message_bytes += static_cast<std::uint32_t>(piece.size());
  return {};
}

// next_piece returns the next event that carries data.
std::expected<MessageEvent, Error> WebSocket::State::next_piece(Deadline deadline) noexcept {
  if (ended != ErrorCode{}) return std::unexpected(Error{ended});
  if (delivered) {
    delivered = false;
    message.give();
    message_bytes = 0;
  }
  for (bool has_read = false;;) {
    std::span<char> bytes = {input.data() + begin, end_at - begin};
    const MessageEvent event = decoder.next(bytes, control, limits());
    begin = end_at - static_cast<std::uint32_t>(bytes.size());
    switch (event.kind) {
      case MessageEvent::Kind::data:
        return event;
      case MessageEvent::Kind::ping:
        answer_ping(event.bytes);
        break;
      case MessageEvent::Kind::pong:
        break;
      case MessageEvent::Kind::close:
        return met_close(event);
      case MessageEvent::Kind::failed: {
        const bool over = event.code == CloseCode::too_big || event.code == CloseCode::policy_violation;
        return fail(event.code, over ? ErrorCode::limit : ErrorCode::protocol);
      }
      case MessageEvent::Kind::none:
        begin = end_at = 0;
        if (auto going = may_go_on(deadline, has_read); !going) return std::unexpected(going.error());
        if (auto filled = fill(deadline); !filled) return std::unexpected(filled.error());
        has_read = true;
        break;
    }
  }
}

// may_go_on looks at what ends a wait. While the peer sends without a pause, no wait does.
std::expected<void, Error> WebSocket::State::may_go_on(Deadline deadline, bool has_read) noexcept {
#if !COIR_NO_ASYNC
  if (served != nullptr && stops.cancelled() && !sent_close.load(std::memory_order_acquire)) {
    if (!tell_of_stop()) return lost(ErrorCode::closed);
  }
#endif
  // The peer was heard since its time to answer a close ended, and has not answered.
  if (sent_close.load(std::memory_order_acquire) &&
      alive_ns >= time_after(close_ns.load(std::memory_order_relaxed), options.close_timeout)) {
    return end(ErrorCode::truncated);
  }
  if (!has_read) return {};
  auto going = check_cancelled();
  if (going && has_come(deadline)) going = std::unexpected(Error{ErrorCode::timed_out});
  if (going) return {};
  input.give();
  stream.rest();
  return going;
}

// fill waits for bytes and reads them.
std::expected<void, Error> WebSocket::State::fill(Deadline deadline) noexcept {
  for (;;) {
    if (stream.drained()) {
      if (auto there = await_input(deadline); !there) return there;
    }
    const std::size_t wanted = decoder.between_messages() ? kFirstInput : kLargeInput;
    if (input.size() < wanted) {
      auto taken = Buffer::take(wanted);
      // A smaller buffer serves, too.
      if (!taken && !input) return std::unexpected(taken.error());
      if (taken) input = std::move(*taken);
    }
    const auto got = stream.read(input.bytes(), Deadline::now());
    if (got) {
      end_at = static_cast<std::uint32_t>(*got);
      heard();
      return {};
    }
    if (got.error() != ErrorCode::timed_out && got.error() != ErrorCode::cancelled) return lost(got.error());
    // By TLS bytes may have come that are no data, and more may lie there.
    if (got.error() == ErrorCode::cancelled || deadline.passed()) {
      input.give();
      stream.rest();
      return std::unexpected(got.error());
    }
    if (!stream.drained()) let_others_run();
  }
}

// await_input waits without buffers until the peer sends something. It pings a peer that is silent.
std::expected<void, Error> WebSocket::State::await_input(Deadline deadline) noexcept {
  input.give();
  stream.rest();
  for (;;) {
    // After its close frame this end only waits for the peer's.
    const bool closing = sent_close.load(std::memory_order_acquire);
    const bool pings = options.ping_after.count() > 0 && !closing;
    const auto patience = closing ? options.close_timeout : pinged ? options.pong_timeout : options.ping_after;
    const std::int64_t since = closing ? close_ns.load(std::memory_order_relaxed) : alive_ns;
    const Deadline silence = pings || closing ? Deadline::at_ns(time_after(since, patience)) : Deadline::never();
    const auto ready = await_readable(std::min(deadline, silence));
    if (ready) break;
    // The server stops: the client is told, and then waited for.
    if (ready.error() == ErrorCode::closed && !closing) {
      if (!tell_of_stop()) return lost(ready.error());
      continue;
    }
    if (!ready.error().is_late()) return ready;
    if (silence <= deadline && silence.passed()) {
      // Closing, or pinged in vain: nobody is there.
      if (closing != sent_close.load(std::memory_order_acquire)) continue;
      if (closing || pinged) return end(ErrorCode::truncated);
      alive_ns = monotonic_ns();
      // When somebody sends meanwhile the peer's acknowledgements tell more than a pong would: write_timeout ends that, and
      // a pong that nobody asked for does not count as missing.
      if (auto free = turn.try_lock()) {
        pinged = true;
        static_cast<void>(send_frame(Opcode::ping, true, {}, Deadline::after(options.pong_timeout)));
      }
      send_pongs();
      continue;
    }
    return ready;
  }
  stream.mark_readable();
  return {};
}

// await_readable waits for the client. Errors: those of wait; closed (the server stops, of which nobody was told yet).
std::expected<void, Error> WebSocket::State::await_readable(Deadline deadline) noexcept {
#if !COIR_NO_ASYNC
  if (served != nullptr && !sent_close.load(std::memory_order_acquire)) {
    CancelScope scope;
    const CancellationWatch watch(stops, scope);
    auto ready = wait(stream.fd(), Direction::readable, deadline);
    if (!ready && ready.error() == ErrorCode::cancelled && scope.caused(ready.error())) {
      return std::unexpected(Error{ErrorCode::closed});
    }
    return ready;
  }
#endif
  return wait(stream.fd(), Direction::readable, deadline);
}

// tell_of_stop tells the client that the server stops. False: the connection is lost.
bool WebSocket::State::tell_of_stop() noexcept {
  return send_close(CloseCode::going_away, {}, Deadline::after(options.close_timeout)).has_value();
}

void WebSocket::State::heard() noexcept {
  pinged = false;
  alive_ns = monotonic_ns();
}

// answer_ping sends the pong, or leaves it to the one who sends at the moment.
void WebSocket::State::answer_ping(std::string_view payload) noexcept {
  {
    const Locked locked(pong_lock);
    pong_bytes = static_cast<std::uint8_t>(payload.size());
    if (!payload.empty()) memcpy(pong, payload.data(), payload.size());
  }
  send_pongs();
}

// end notes why nothing more comes.
std::unexpected<Error> WebSocket::State::end(ErrorCode error) noexcept {
  ended = error;
  if (error == ErrorCode::truncated) code = CloseCode::abnormal;
  input.give();
  message.give();
  broken.store(true, std::memory_order_release);
  stream.rest();
  return std::unexpected(Error{error});
}

std::unexpected<Error> WebSocket::State::lost(Error error) noexcept {
  return end(error == ErrorCode::no_memory ? ErrorCode::no_memory : ErrorCode::truncated);
}

// met_close answers the peer's close frame, if it is not an answer itself.
std::unexpected<Error> WebSocket::State::met_close(const MessageEvent& event) noexcept {
  code = event.code;
  reason_bytes = static_cast<std::uint8_t>(event.bytes.size());
  // The reason lies in the input, or there already, behind the code.
  if (!event.bytes.empty()) memmove(control.data(), event.bytes.data(), event.bytes.size());
  static_cast<void>(send_close(event.code, {}, Deadline::after(options.close_timeout)));
  stream.shutdown_write();
  return end(ErrorCode::end_of_stream);
}

// fail ends the connection with a code of this side's, and lets the peer read it.
std::unexpected<Error> WebSocket::State::fail(CloseCode with, ErrorCode error) noexcept {
  const bool told = sent_close.load(std::memory_order_acquire) ||
                    send_close(with, {}, Deadline::after(options.close_timeout)).has_value();
  stream.shutdown_write();
  if (told) linger();
  end(error);
  code = CloseCode::abnormal;
  return std::unexpected(Error{error});
}

// linger drops what the peer still sends, so that it reads the close frame instead of a reset.
void WebSocket::State::linger() noexcept {
  input.give();
  message.give();
  const Deadline deadline = Deadline::after(options.close_timeout);
  Linger dropped;
  for (;;) {
    const Linger::Step step = dropped.drop(stream.fd());
    if (step == Linger::Step::over || deadline.passed()) return;
    if (step == Linger::Step::waits && !wait(stream.fd(), Direction::readable, deadline)) return;
    if (step == Linger::Step::more) let_others_run();
  }
}

}  // namespace coir::http
