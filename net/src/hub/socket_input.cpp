// Input of a hub's socket, and its end.
#include <string.h>

#include <algorithm>
#include <utility>

#include "hub/socket_table.h"
#include "socket/linger.h"

namespace coir::http {
namespace {

constexpr int kReadsInTurn = 8;  // reads, until others are served

MessageLimits limits_of(const WebSocketOptions& options) noexcept {
  return {options.max_message, options.max_frame, options.max_fragments};
}

}  // namespace

void SocketTable::begin(Connection& connection, std::string_view sent, KeptMemory memory) noexcept {
  SocketRecord& record = record_of(connection);
  connection.part = coarse_ms();
  {
    const tls::Holding held(record.lock);
    record.connection = &connection;
    record.open = true;
    record.corked = true;
  }
  if (calls_.opened != nullptr) calls_.opened(calls_.program, record, record.state());
  // A client that is in a hurry has its first messages behind the request. This is done without messages, too: the program's
  // output is sent behind it.
  do {
    const std::size_t size = std::min(sent.size(), memory.in.size());
    if (size != 0) memcpy(memory.in.data(), sent.data(), size);
    decode(record, memory.in.first(size));
    sent.remove_prefix(size);
  } while (!sent.empty());
  go_on(record, memory);
}

void SocketTable::serve(Connection& connection, KeptMemory memory) noexcept {
  go_on(record_of(connection), memory);
}

// go_on does for a socket what there is to do, until it rests or ends. Without memory it reads nothing.
void SocketTable::go_on(SocketRecord& record, KeptMemory memory) noexcept {
  Connection& connection = *record.connection;
  Stream& stream = connection.stream;
  for (int reads = 0;;) {
    const Flushed flushed = flush(record);
    if (flushed == Flushed::failed || (flushed == Flushed::all && record.ends)) return end(record);
    if (flushed == Flushed::waits) {
      {
        const tls::Holding held(record.lock);
        record.unsent_part().client = SlowPeer(stream.fd());
      }
      if (rest_full(record)) return;
      continue;
    }
    if (has_left(record)) return end(record);
    if (stream.drained() || memory.in.empty() || reads == kReadsInTurn) {
      const bool more = !stream.drained();
      const auto work = [&record, more] { return more || record.work.load(std::memory_order_relaxed); };
      // A message to a client does not break the client's own silence.
      const auto silent = static_cast<std::int32_t>(coarse_ms() - connection.part);
      connection.since_ns = coarse_ns() - std::int64_t{std::max(silent, 0)} * 1'000'000;
      if (rest(connection, Direction::readable, work)) return;
      // A caller that only sends leaves the reading to a session, and so does a reader whose turn is over.
      if (memory.in.empty() || reads == kReadsInTurn) return serve_soon(connection);
      continue;
    }
    // By TLS a record may have no data, and any number of them may come.
    ++reads;
    const auto got = stream.read(memory.in, Deadline::now());
    if (got) {
      if (record.leaves) {
        record.dropped_bytes += static_cast<std::uint32_t>(*got);
      } else {
        connection.part = coarse_ms();
      }
      record.pinged.store(false, std::memory_order_relaxed);
      decode(record, memory.in.first(*got));
    } else if (got.error() != ErrorCode::timed_out) {
      return end(record);
    }
  }
}

// rest_full lets a socket rest until its client has taken something, or half of its time to is over. False: it goes on.
bool SocketTable::rest_full(SocketRecord& record) noexcept {
  record.connection->since_ns = coarse_ns();
  return rest(*record.connection, Direction::writable,
              [&record] { return record.doomed.load(std::memory_order_relaxed); });
}

// is_stuck ends that half.
bool SocketTable::is_stuck(SocketRecord& record) noexcept {
  const tls::Holding held(record.lock);
  return record.unsent_part().client.is_stuck(record.connection->stream.fd());
}

// has_left tells whether the client of a socket that has said its last word has had its time, or its bytes, to end too.
// Both count from the first call at which all that was to be sent is sent.
bool SocketTable::has_left(SocketRecord& record) const noexcept {
  if (!record.drops && !record.closing.load(std::memory_order_relaxed)) return false;
  if (!record.leaves) {
    record.leaves = true;
    record.dropped_bytes = 0;
    record.connection->part = coarse_ms();
  }
  return record.dropped_bytes >= Linger::kMostBytes ||
         coarse_ms() - record.connection->part >= options_.socket.close_timeout.count();
}

// decode makes messages of bytes that have arrived and calls the program with them.
void SocketTable::decode(SocketRecord& record, std::span<char> bytes) noexcept {
  if (record.drops) return;
  {
    const tls::Holding held(record.lock);
    record.corked = true;
  }
  MessageDecoder::ControlPayload control;
  if (record.decoder.holds_control()) control = record.half().control;
  for (bool more = true; more && !record.ends && !record.drops;) {
    const MessageEvent event = record.decoder.next(bytes, control, limits_of(options_.socket));
    switch (event.kind) {
      case MessageEvent::Kind::none:
        more = false;
        break;
      case MessageEvent::Kind::data:
        if (!record.closing.load(std::memory_order_relaxed)) take_piece(record, event);
        break;
      case MessageEvent::Kind::ping:
        // If no more may wait for the client, the pong is left out.
        static_cast<void>(send(record, Opcode::pong, event.bytes));
        break;
      case MessageEvent::Kind::pong:
        break;
      case MessageEvent::Kind::close:
        record.code = event.code;
        static_cast<void>(put_close(record, event.code, {}));
        record.ends = true;
        break;
      case MessageEvent::Kind::failed:
        fail(record, event.code);
        break;
    }
  }
  if (!record.ends && !record.drops && record.decoder.holds_control()) {
    if (record.message || begin_half(record, 0)) {
      record.half().control = control;
    } else {
      fail(record, CloseCode::try_again_later);
    }
  } else if (record.decoder.between_messages() || record.ends || record.drops) {
    record.message.give();
  }
  const tls::Holding held(record.lock);
  record.corked = false;
}

// take_piece calls the program with a message that has come whole, or keeps a part of one.
void SocketTable::take_piece(SocketRecord& record, const MessageEvent& event) noexcept {
  if (event.begins && event.ends) return call(record, event.text, event.bytes);
  // Without a buffer nothing of the message was kept: this is its first piece.
  if (!record.message && !begin_half(record, event.bytes.size())) return fail(record, CloseCode::try_again_later);
  const std::size_t used = SocketRecord::kMessageAt + record.half().bytes;
  while (record.message.size() - used < event.bytes.size()) {
    if (!record.message.grow(used)) return fail(record, CloseCode::try_again_later);
  }
  if (!event.bytes.empty()) memcpy(record.message.data() + used, event.bytes.data(), event.bytes.size());
  record.half().bytes += static_cast<std::uint32_t>(event.bytes.size());
  if (!event.ends) return;
  call(record, event.text, {record.message.data() + SocketRecord::kMessageAt, record.half().bytes});
  record.message.give();
}

// begin_half takes the buffer for what has come halfway, of a message so many bytes.
bool SocketTable::begin_half(SocketRecord& record, std::size_t bytes) noexcept {
  auto taken = Buffer::take(SocketRecord::kMessageAt + bytes);
  if (!taken) return false;
  record.message = std::move(*taken);
  record.half().bytes = 0;
  record.half().begun_ms = coarse_ms();
  return true;
}

void SocketTable::call(SocketRecord& record, bool text, std::string_view bytes) noexcept {
  calls_.message(calls_.program, record, record.state(), {.text = text, .bytes = bytes});
}

// fail tells the client why its socket ends, and then drops what it sends until it has read that.
void SocketTable::fail(SocketRecord& record, CloseCode code) noexcept {
  record.drops = true;
  // Without memory for the frame the client learns nothing.
  if (!put_close(record, code, {})) record.ends = true;
  record.message.give();
}

void SocketTable::farewell(Connection& connection) noexcept {
  SocketRecord& record = record_of(connection);
  // By TLS sending may wait, which where memory is being made room for it must not.
  if (!connection.stream.secure() || ends()) {
    {
      const tls::Holding held(record.lock);
      record.corked = true;
    }
    static_cast<void>(put_close(record, CloseCode::going_away, {}));
    static_cast<void>(flush(record));
  }
  release(record);
}

// end closes a socket that belongs to the caller.
void SocketTable::end(SocketRecord& record) noexcept {
  Connection& connection = *record.connection;
  release(record);
  Keeper::close(connection);
}

// release gives back all that was kept of a socket but its connection.
void SocketTable::release(SocketRecord& record) noexcept {
  {
    const tls::Holding held(record.lock);
    record.open = false;
    record.generation.fetch_add(1, std::memory_order_relaxed);
    record.unsent.give();
  }
  record.message.give();
  unsubscribe_all(record);
  if (calls_.closed != nullptr) calls_.closed(calls_.program, record, record.state(), record.code);
  calls_.destroy(record.state());
  give_record(record);
}

}  // namespace coir::http
