// Output of a hub's socket: into the kernel if it takes it, else into a buffer for the socket's owner.
#include <coir/utf8.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include <algorithm>
#include <new>
#include <utility>

#include "hub/socket_table.h"
#include "socket/kernel.h"
#include "websocket/close_payload.h"

namespace coir::http {
namespace {

// A call's output is sent when this much has gathered, or at the call's end.
constexpr std::size_t kCorkedBytes = 16 * 1024;

std::size_t bytes_of(std::span<const iovec> parts) noexcept {
  std::size_t bytes = 0;
  for (const iovec& part : parts) bytes += part.iov_len;
  return bytes;
}

std::unexpected<Error> not_sent(ErrorCode code) noexcept {
  return std::unexpected(Error{code});
}

SocketRecord& record(HubSocket& socket) noexcept {
  return static_cast<SocketRecord&>(socket);
}

}  // namespace

std::expected<void, Error> SocketTable::send(SocketRecord& record, Opcode opcode, std::string_view payload) noexcept {
  char memory[kMostFrameHeader];
  const std::string_view head = write_frame_header({.opcode = opcode, .payload_bytes = payload.size()}, memory);
  const iovec parts[] = {{const_cast<char*>(head.data()), head.size()},
                         {const_cast<char*>(payload.data()), payload.size()}};
  return put(record, parts);
}

std::expected<void, Error> SocketTable::put(SocketRecord& record, std::span<const iovec> parts) noexcept {
  const tls::Holding held(record.lock);
  if (!record.open || record.closing.load(std::memory_order_relaxed)) return not_sent(ErrorCode::closed);
  bool wants_owner = false;
  const auto out = put_held(record, parts, wants_owner);
  if (wants_owner) hand_over_held(record);
  return out;
}

std::expected<void, Error> SocketTable::put_published(std::uint32_t socket, std::uint32_t generation,
                                                      std::span<const iovec> parts) noexcept {
  SocketRecord& record = record_at(socket);
  const tls::Holding held(record.lock);
  if (record.generation.load(std::memory_order_relaxed) != generation || !record.open ||
      record.closing.load(std::memory_order_relaxed)) {
    return not_sent(ErrorCode::closed);
  }
  bool wants_owner = false;
  const auto out = put_held(record, parts, wants_owner);
  if (wants_owner) hand_over_held(record);
  if (!out && out.error() != ErrorCode::closed) {
    too_slow();
    doom_held(record);
  }
  return out;
}

// put_held sends a frame, or keeps what of it the kernel does not take. `wants_owner`: the owner has to go on with it.
std::expected<void, Error> SocketTable::put_held(SocketRecord& record, std::span<const iovec> parts,
                                                 bool& wants_owner) noexcept {
  if (record.doomed.load(std::memory_order_relaxed)) return not_sent(ErrorCode::closed);
  const Stream& stream = record.connection->stream;
  if (record.corked || record.unsent || stream.secure()) {
    // The owner sends what is there anyhow, but of a socket that rests.
    wants_owner = !record.corked && !record.unsent;
    const auto kept = append_held(record, parts, 0, true);
    if (kept || record.unsent || stream.secure()) return kept;
    // There is no buffer: what would have gathered goes at once.
    wants_owner = false;
  }
  const ssize_t sent = kernel::send_parts(stream.fd(), parts.data(), parts.size(), 0);
  if (sent < 0 && sent != -EAGAIN && sent != -EINTR) {
    doom_held(record);
    return not_sent(ErrorCode::closed);
  }
  const auto taken = static_cast<std::size_t>(std::max<ssize_t>(sent, 0));
  if (taken == bytes_of(parts)) return {};
  auto kept = append_held(record, parts, taken, taken == 0);
  if (kept) wants_owner = true;
  // A frame that was begun has to be ended.
  if (!kept && taken != 0) doom_held(record);
  return kept;
}

// append_held keeps `parts` but for their first `skip` bytes. Errors: limit, no_memory.
std::expected<void, Error> SocketTable::append_held(SocketRecord& record, std::span<const iovec> parts,
                                                    std::size_t skip, bool bounded) noexcept {
  const std::size_t bytes = bytes_of(parts) - skip;
  if (record.corked && record.unsent && record.waiting() + bytes > kCorkedBytes &&
      !record.connection->stream.secure()) {
    SocketRecord::Part& part = record.unsent_part();
    const ssize_t sent =
        kernel::send(record.connection->stream.fd(), record.unsent.data() + part.at, record.waiting(), 0);
    if (sent > 0) part.at += static_cast<std::uint32_t>(sent);
  }
  if (bounded && record.waiting() + bytes > options_.max_unsent) return not_sent(ErrorCode::limit);
  if (!room_held(record, bytes)) return not_sent(ErrorCode::no_memory);
  for (const iovec& part : parts) {
    const std::size_t left_out = std::min(skip, part.iov_len);
    skip -= left_out;
    const std::size_t size = part.iov_len - left_out;
    if (size == 0) continue;
    std::uint32_t& end = record.unsent_part().end;
    memcpy(record.unsent.data() + end, static_cast<const char*>(part.iov_base) + left_out, size);
    end += static_cast<std::uint32_t>(size);
  }
  return {};
}

// room_held makes room for that many bytes behind those that wait. To relieve the ledger could close this very socket,
// whose lock is held. From the buffer in which the owner is sending all goes to a larger one, and the owner frees the old.
bool SocketTable::room_held(SocketRecord& record, std::size_t bytes) noexcept {
  constexpr std::uint32_t kFront = sizeof(SocketRecord::Part);
  const auto place = [&](Buffer memory, std::uint32_t waits, Buffer sent_from) {
    record.unsent = std::move(memory);
    ::new (record.unsent.data()) SocketRecord::Part{kFront, kFront + waits, std::move(sent_from)};
  };
  if (!record.unsent) {
    auto taken = Buffer::take(kFront + bytes, false);
    if (!taken) return false;
    place(std::move(*taken), 0, {});
    return true;
  }
  while (record.unsent.size() - record.unsent_part().end < bytes) {
    SocketRecord::Part& part = record.unsent_part();
    const auto waits = static_cast<std::uint32_t>(record.waiting());
    if (record.sending && !part.sent_from) {
      auto larger = Buffer::take(kFront + waits + bytes, false);
      if (!larger) return false;
      memcpy(larger->data() + kFront, record.unsent.data() + part.at, waits);
      Buffer old = std::move(record.unsent);
      place(std::move(*larger), waits, std::move(old));
    } else if (part.at != kFront) {
      memmove(record.unsent.data() + kFront, record.unsent.data() + part.at, waits);
      part.at = kFront;
      part.end = kFront + waits;
    } else if (!record.unsent.grow(part.end, false)) {
      return false;
    }
  }
  return true;
}

// hand_over_held has the owner of a socket go on: one that rests gets one. The lock keeps the connection the socket's.
void SocketTable::hand_over_held(SocketRecord& record) noexcept {
  record.work.store(true, std::memory_order_relaxed);
  if (Connection& connection = *record.connection; take(connection)) serve_soon(connection);
}

// doom_held shuts the connection down: the kernel tells its owner, or wakes it.
void SocketTable::doom_held(SocketRecord& record) noexcept {
  record.doomed.store(true, std::memory_order_relaxed);
  record.work.store(true, std::memory_order_relaxed);
  ::shutdown(record.connection->stream.fd(), SHUT_RDWR);
}

// flush sends what waits. By the owner.
SocketTable::Flushed SocketTable::flush(SocketRecord& record) noexcept {
  for (;;) {
    Stream& stream = record.connection->stream;
    iovec part;
    {
      const tls::Holding held(record.lock);
      record.work.store(false, std::memory_order_relaxed);
      if (record.doomed.load(std::memory_order_relaxed)) return Flushed::failed;
      if (record.waiting() == 0) {
        record.unsent.give();
        return Flushed::all;
      }
      part = {record.unsent.data() + record.unsent_part().at, record.waiting()};
      if (!stream.secure()) {
        const ssize_t sent = kernel::send(stream.fd(), part.iov_base, part.iov_len, 0);
        if (sent == -EAGAIN) return Flushed::waits;
        if (sent < 0 && sent != -EINTR) return Flushed::failed;
        if (sent > 0) record.unsent_part().at += static_cast<std::uint32_t>(sent);
        continue;
      }
      record.sending = true;
    }
    // By TLS the call may park, if only for a moment.
    const auto sent = stream.write_some(std::span(&part, 1), Deadline::now());
    const tls::Holding held(record.lock);
    record.sending = false;
    record.unsent_part().sent_from.give();
    if (!sent) return sent.error() == ErrorCode::timed_out ? Flushed::waits : Flushed::failed;
    record.unsent_part().at += static_cast<std::uint32_t>(*sent);
  }
}

std::expected<void, Error> SocketTable::put_close(SocketRecord& record, CloseCode code,
                                                  std::string_view reason) noexcept {
  char payload[kMostControlPayload], memory[kMostFrameHeader];
  const auto written = write_close(code, reason, payload);
  if (!written) return std::unexpected(written.error());
  const std::string_view head = write_frame_header({.opcode = Opcode::close, .payload_bytes = written->size()}, memory);
  const iovec parts[] = {{const_cast<char*>(head.data()), head.size()},
                         {const_cast<char*>(written->data()), written->size()}};
  const tls::Holding held(record.lock);
  if (!record.open || record.closing.load(std::memory_order_relaxed)) return not_sent(ErrorCode::closed);
  bool wants_owner = false;
  auto out = put_held(record, parts, wants_owner);
  if (out) record.closing.store(true, std::memory_order_relaxed);
  // The owner of one that rests notes the time from which its client is waited for.
  if (out && !record.corked) hand_over_held(record);
  return out;
}

std::expected<void, Error> HubSocket::send_text(std::string_view text) noexcept {
  if (!is_utf8(text)) return not_sent(ErrorCode::invalid);
  return record(*this).table().send(record(*this), Opcode::text, text);
}

std::expected<void, Error> HubSocket::send_binary(std::string_view bytes) noexcept {
  return record(*this).table().send(record(*this), Opcode::binary, bytes);
}

std::expected<void, Error> HubSocket::close(CloseCode code, std::string_view reason) noexcept {
  return record(*this).table().close(record(*this), code, reason);
}

std::expected<void, Error> HubSocket::subscribe(std::string_view topic) noexcept {
  return record(*this).table().subscribe(record(*this), topic);
}

void HubSocket::unsubscribe(std::string_view topic) noexcept {
  record(*this).table().unsubscribe(record(*this), topic);
}

Published HubSocket::publish(std::string_view topic, std::string_view text) noexcept {
  return record(*this).table().publish(topic, text, true);
}

Published HubSocket::publish_binary(std::string_view topic, std::string_view bytes) noexcept {
  return record(*this).table().publish(topic, bytes, false);
}

std::expected<void, Error> SocketTable::close(SocketRecord& record, CloseCode code, std::string_view reason) noexcept {
  return put_close(record, code, reason);
}

}  // namespace coir::http
