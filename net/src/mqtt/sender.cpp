// A MqttClient's second fiber, which sends: what is queued, answers, and pings. Declared in mqtt/client_state.h.
#include <sys/socket.h>

#include <algorithm>

#include "mqtt/client_state.h"

namespace coir::mqtt {

// fail ends the connection, for its first reason. The mutex is held. The number of the descriptor stays taken until `run`
// closes the stream: a session of TLS still reads and writes it.
void ClientState::fail(Error why) noexcept {
  if (!lost) lost_why = why;
  lost = true;
  ::shutdown(stream.fd(), SHUT_RDWR);
  to_send.notify_all();
  taken.notify_all();
}

// write sends what `gather` has filled. Its time begins anew whenever bytes move.
std::expected<void, Error> ClientState::write(std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const iovec part = {const_cast<char*>(bytes.data()), bytes.size()};
    const auto sent = stream.write_some({&part, 1}, Deadline::after(options.answer_timeout));
    if (!sent) return std::unexpected(sent.error());
    bytes.remove_prefix(*sent);
  }
  return {};
}

void ClientState::send_all() noexcept {
  for (;;) {
    auto held = lock.lock();
    if (!held) return;
    std::size_t size = 0;
    std::int64_t gathered_ns = 0;
    while (!lost) {
      gathered_ns = monotonic_ns();
      if ((size = gather()) != 0) break;
      const auto waited = to_send.wait(*held, next_look());
      if (!waited && !waited.error().is_late()) return;
    }
    if (lost) return;
    const bool leaves = said_goodbye;
    held->unlock();
    const auto sent = write({out.data(), size});
    held = lock.lock();
    if (!held) return;
    sent_ns = monotonic_ns();
    if (!sent) return fail(sent.error());
    // The time for an answer begins once the question has left, behind a long message too.
    if (pinged_ns >= gathered_ns) pinged_ns = sent_ns;
    if (asked_ns >= gathered_ns) asked_ns = sent_ns;
    if (leaves) {
      // The broker hangs up. A close while it still sends could take our last word from it.
      stream.tcp().shutdown_write();
      static_cast<void>(to_send.wait_until(*held, [this] { return lost; }, Deadline::after(std::chrono::seconds(1))));
      return fail(ErrorCode::closed);
    }
  }
}

// gather fills `out` with what is to be sent now. The mutex is held.
std::size_t ClientState::gather() noexcept {
  const std::span<char> room = out.bytes().first(options.max_packet);
  std::size_t size = 0;
  std::size_t taken_replies = 0;
  for (; taken_replies < reply_count; ++taken_replies) {
    const Reply& each = replies[taken_replies];
    const std::size_t written = write_reply(room.subspan(size), each.type, each.id);
    if (written == 0) break;
    size += written;
  }
  if (taken_replies != 0) {
    std::copy(replies + taken_replies, replies + reply_count, replies);
    reply_count -= taken_replies;
    taken.notify_all();
  }
  const std::int64_t now = monotonic_ns();
  if (lacking != 0 && asked == 0 && asks_ns <= now) {
    const std::size_t written = write_subscribe(room.subspan(size));
    // Alone it fits.
    if (written == 0) return size;
    asked = lacking;
    asked_ns = now;
    size += written;
  }
  PublishFields message;
  while (!closing && queue.next(message, options.max_in_flight)) {
    // On a session that has nothing of us it is no duplicate.
    message.duplicate = message.duplicate && session_present;
    const std::size_t written = write_publish(room.subspan(size), message);
    if (written == 0 && size != 0) return size;
    queue.took();
    // An earlier run may have left one that is too large for this one.
    if (written == 0) answered(message.id);
    size += written;
  }
  if (queue.empty()) all_sent.notify_all();
  if (ping_is_due(now)) {
    const std::size_t written = write_bare(room.subspan(size), PacketType::pingreq);
    // Without room it goes out behind what is there. Alone it fits.
    if (written != 0) note_ping(now);
    size += written;
  }
  if (closing) {
    const std::size_t written = write_bare(room.subspan(size), PacketType::disconnect);
    said_goodbye = written != 0;
    size += written;
  }
  return size;
}

// write_subscribe asks for what is lacking. 0: it does not fit.
std::size_t ClientState::write_subscribe(std::span<char> room) noexcept {
  const auto each_lacking = [this](auto&& visit) {
    for (std::size_t i = 0; i < options.subscriptions.size(); ++i) {
      if ((lacking >> i & 1) != 0) visit(options.subscriptions[i]);
    }
  };
  std::size_t filters = 0;
  each_lacking([&](const Subscription& each) { filters += filter_bytes(each.filter); });
  std::size_t size = begin_subscribe(room, kLastMessageId + 1, filters);
  if (size == 0) return 0;
  each_lacking([&](const Subscription& each) {
    size += write_filter(room.subspan(size), each.filter, static_cast<std::uint8_t>(each.qos));
  });
  return size;
}

// is_overdue tells of an answer to a ping or to subscriptions that has not come in time, unless the program keeps us from
// reading it.
bool ClientState::is_overdue(std::int64_t now) const noexcept {
  const std::int64_t patience = std::chrono::nanoseconds(options.answer_timeout).count();
  return handing == Handing::nothing &&
         ((pinged && now >= pinged_ns + patience) || (asked != 0 && now >= asked_ns + patience));
}

// ping_is_due tells whether a ping goes out now: either side was silent for three quarters of the keep-alive time. An
// answer that is overdue ends the connection.
bool ClientState::ping_is_due(std::int64_t now) noexcept {
  const std::int64_t interval = std::chrono::nanoseconds(options.keep_alive).count() / 4 * 3;
  if (is_overdue(now)) {
    fail(ErrorCode::timed_out);
    return false;
  }
  const bool unheard = now - heard_ns.load(std::memory_order_relaxed) >= interval;
  return now - sent_ns >= interval || (!pinged && unheard);
}

// note_ping begins the time in which the ping is to be answered.
void ClientState::note_ping(std::int64_t now) noexcept {
  if (!pinged) pinged_ns = now;
  pinged = true;
  sent_ns = now;
}

Deadline ClientState::next_look() const noexcept {
  const std::int64_t interval = std::chrono::nanoseconds(options.keep_alive).count() / 4 * 3;
  std::int64_t next = sent_ns + interval;
  if (!pinged) next = std::min(next, heard_ns.load(std::memory_order_relaxed) + interval);
  if (handing == Handing::nothing) {
    const std::int64_t patience = std::chrono::nanoseconds(options.answer_timeout).count();
    if (pinged) next = std::min(next, pinged_ns + patience);
    if (asked != 0) next = std::min(next, asked_ns + patience);
  }
  if (lacking != 0 && asked == 0) next = std::min(next, asks_ns);
  return Deadline::at_ns(next);
}

}  // namespace coir::mqtt
