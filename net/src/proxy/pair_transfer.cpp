// How bytes pass between the two sides of a pair. Declared in proxy/forward_keeper.h.
#include <coir/http/wire/chunked.h>
#include <string.h>

#include <algorithm>
#include <utility>

#include "proxy/field_kind.h"
#include "proxy/forward_keeper.h"
#include "socket/kernel.h"
#include "socket/write_all.h"

namespace coir::http {
namespace {

constexpr int kMostReads = 8;               // reads, until others are served
constexpr std::size_t kBeforeRelayed = 18;  // a chunk's size with its line end
constexpr std::size_t kBehindRelayed = kEndOfChunks.size();

bool would_wait(Error error) noexcept {
  return error == ErrorCode::timed_out;
}

// has_failed tells of a side that has ended before whether anything behind its end was heard, and that is a reset.
bool has_failed(const Stream& stream) noexcept {
  return !stream.drained() && kernel::has_failed(stream.fd());
}

}  // namespace

// pass_down passes on what the upstream has sent, as long as the client takes it.
ForwardKeeper::Next ForwardKeeper::pass_down(ForwardPair& pair, KeptMemory memory) noexcept {
  for (int reads = 0; reads < kMostReads; ++reads) {
    if (const Next flushed = flush(pair, Side::client); flushed != Next::again) {
      if (flushed == Next::end) pair.client_stays = false;
      return flushed;
    }
    if (pair.peeks) return pass_peeked(pair, memory.in);
    if (pair.content.whole) {
      if (!pair.trailers) return Next::end;
      const Next next = put_trailers(pair, memory.in);
      if (next == Next::end) pair.client_stays = false;
      if (next != Next::again) return next;
      continue;
    }
    if (pair.upstream_ended) return pair.client_ended || has_failed(pair.lease.stream()) ? Next::end : Next::rest;
    if (pair.lease.stream().drained()) return Next::rest;
    const std::span<char> place = memory.in.subspan(kBeforeRelayed, memory.in.size() - kBeforeRelayed - kBehindRelayed);
    const auto got = pair.lease.stream().read(place, Deadline::now());
    // TLS may have had an empty record, with more behind it.
    if (!got && would_wait(got.error())) return pair.lease.stream().drained() ? Next::rest : Next::again;
    const Next next = got ? take_content(pair, place.first(*got)) : end_of_upstream(pair, got.error());
    // Bytes that could not be sent are lost, even the last bytes of a whole response.
    if (next == Next::end) pair.client_stays = false;
    if (next != Next::again) return next;
  }
  return Next::again;
}

// pass_peeked does so for content that stays in the upstream's socket until the client has taken it.
ForwardKeeper::Next ForwardKeeper::pass_peeked(ForwardPair& pair, std::span<char> place) noexcept {
  const bool was_full = std::exchange(pair.client_full, false);
  if (pair.content.broken) return Next::cut;
  for (int reads = 0; reads < kMostReads; ++reads) {
    OwedFraming& owed = pair.owed;
    const OwedFraming before = owed;
    RelayedContent seen = pair.content;
    std::size_t found = 0;
    if (before.bytes == 0) {
      if (seen.whole) return Next::end;
      const std::uint64_t most = owed.content != 0 ? owed.content : place.size();
      const Next peeked =
          peek(pair, seen, place.first(static_cast<std::size_t>(std::min<std::uint64_t>(most, place.size()))), found);
      if (peeked != Next::again) return peeked;
    }
    const std::uint64_t chunk = !pair.writes_chunks ? 0 : owed.content != 0 ? owed.content : found;
    char line[OwedFraming::kMost];
    std::string_view front(before.text, before.bytes), behind;
    if (pair.writes_chunks && before.bytes == 0) {
      if (found != 0 && owed.content == 0) front = write_chunk_size(found, line);
      if (found == chunk) behind = seen.whole ? kEndOfChunks : kEndOfChunks.substr(0, 2);
      if (found == 0) behind = seen.whole ? kLastChunk : std::string_view();
    }
    iovec parts[] = {{const_cast<char*>(front.data()), front.size()},
                     {place.data(), found},
                     {const_cast<char*>(behind.data()), behind.size()}};
    std::span<iovec> left(parts);
    std::size_t sent = 0;
    // Until the client's socket is full: only then does it tell of room. TLS may send less than there is room for.
    for (take_sent(left, 0); !left.empty();) {
      const auto written = pair.client->stream.write_some(left, Deadline::now());
      if (!written && !would_wait(written.error())) {
        pair.client_stays = false;
        return Next::end;
      }
      if (!written) break;
      take_sent(left, *written);
      sent += *written;
      pair.note_taken(Side::client);
    }
    const std::size_t taken = owed.took(sent, front, found, behind, before.bytes != 0 ? 0 : chunk);
    if (before.bytes == 0) pair.content.advance(seen, pair.lease.stream().fd(), found, taken, place);
    if (pair.content.broken) return Next::cut;
    if (seen.strays && taken == found) pair.reusable = false;
    if (!left.empty()) {
      pair.client_full = true;
      if (!was_full) pair.note_taken(Side::client);
      return Next::rest;
    }
  }
  return Next::again;
}

// peek has `seen` unframe what the upstream has sent, `found` bytes of content.
ForwardKeeper::Next ForwardKeeper::peek(ForwardPair& pair, RelayedContent& seen, std::span<char> place,
                                        std::size_t& found) noexcept {
  seen.used = 0;
  const ssize_t got = kernel::peek(pair.lease.stream().fd(), place.data(), place.size());
  if (got == -EAGAIN) return Next::rest;
  if (got == -EINTR) return Next::again;
  if (got == 0 && seen.end == ContentEnd::close) {
    seen.whole = true;
    return Next::again;
  }
  if (got <= 0) return Next::cut;
  const auto content = seen.unframe(place.first(static_cast<std::size_t>(got)));
  if (!content) return Next::cut;
  found = *content;
  return Next::again;
}

// take_content takes the framing off and puts the client's on, for which there is room in front and behind.
ForwardKeeper::Next ForwardKeeper::take_content(ForwardPair& pair, std::span<char> bytes) noexcept {
  pair.moved = true;
  const auto found = pair.content.unframe(bytes, pair.kept_trailers());
  if (!found) return Next::cut;
  const std::size_t content = *found;
  if (pair.content.strays) pair.reusable = false;
  char* begin = bytes.data();
  char* end = begin + content;
  if (pair.writes_chunks) {
    if (content != 0) {
      char line[kBeforeRelayed];
      const std::string_view size = write_chunk_size(content, line);
      begin -= size.size();
      memcpy(begin, size.data(), size.size());
      memcpy(end, "\r\n", 2);
      end += 2;
    }
    if (pair.content.whole && !pair.trailers) {
      memcpy(end, kLastChunk.data(), kLastChunk.size());
      end += kLastChunk.size();
    }
  }
  return begin == end ? Next::again : put(pair, Side::client, {begin, end});
}

ForwardKeeper::Next ForwardKeeper::end_of_upstream(ForwardPair& pair, Error error) noexcept {
  if (!(error == ErrorCode::end_of_stream) || (!pair.tunnel && pair.content.end != ContentEnd::close)) return Next::cut;
  pair.upstream_ended = true;
  if (pair.tunnel) {
    return pair.client->stream.shutdown_write() ? Next::again : Next::end;
  }
  pair.content.whole = true;
  return pair.writes_chunks ? put(pair, Side::client, kLastChunk) : Next::again;
}

// pass_up passes on what the client has sent through a tunnel. Bytes behind its request are not read while the request is
// answered, so that it can be served later, and its end ends the response. On a kernel that would tell of it over and over
// it is read and dropped, and the connection ends with the response.
ForwardKeeper::Next ForwardKeeper::pass_up(ForwardPair& pair, KeptMemory memory) noexcept {
  const bool tunnel = pair.tunnel;
  Stream& client = pair.client->stream;
  Stream& upstream = pair.lease.stream();
  if (!tunnel && resting_wait_hears_edges()) {
    if (!std::exchange(pair.client_news, false)) return Next::rest;
    return kernel::has_hung_up(client.fd()) ? Next::end : Next::rest;
  }
  for (int reads = 0; reads < kMostReads; ++reads) {
    if (const Next flushed = flush(pair, Side::upstream); flushed != Next::again) return flushed;
    if (pair.client_ended && pair.upstream_ended) return Next::end;
    if (client.drained()) return Next::rest;
    const auto got = client.read(memory.out, Deadline::now());
    if (got) {
      pair.client_stays = false;
      if (!tunnel) continue;
      const Next next = put(pair, Side::upstream, {memory.out.data(), *got});
      if (next != Next::again) return next;
    } else if (would_wait(got.error())) {
      return client.drained() ? Next::rest : Next::again;
    } else if (tunnel && got.error() == ErrorCode::end_of_stream) {
      // Again: reading tells no more of it, not even of a reset.
      if (std::exchange(pair.client_ended, true)) return kernel::has_failed(client.fd()) ? Next::end : Next::rest;
      pair.moved = true;
      if (!upstream.shutdown_write()) return Next::end;
    } else {
      return Next::end;
    }
  }
  // A peer that keeps sending instead of reading is no client.
  return tunnel ? Next::again : Next::end;
}

// flush sends what the other side has not taken. Again: all of it is sent.
ForwardKeeper::Next ForwardKeeper::flush(ForwardPair& pair, Side to) noexcept {
  Stream& stream = pair.stream(to);
  Buffer& unsent = pair.unsent(to);
  while (unsent) {
    ForwardPair::Part& part = ForwardPair::part(unsent);
    const iovec left = {unsent.data() + part.at, part.end - part.at};
    const auto sent = stream.write_some({&left, 1}, Deadline::now());
    if (!sent) return would_wait(sent.error()) ? Next::rest : Next::end;
    part.at += static_cast<std::uint32_t>(*sent);
    pair.note_taken(to);
    if (part.at == part.end) unsent.give();
  }
  return Next::again;
}

// put sends bytes, and keeps what the kernel does not take.
ForwardKeeper::Next ForwardKeeper::put(ForwardPair& pair, Side to, std::string_view bytes) noexcept {
  Stream& stream = pair.stream(to);
  // If it takes none of them, its time begins now.
  pair.note_taken(to);
  while (!bytes.empty()) {
    const iovec part = {const_cast<char*>(bytes.data()), bytes.size()};
    const auto sent = stream.write_some({&part, 1}, Deadline::now());
    if (!sent && !would_wait(sent.error())) return Next::end;
    if (!sent) break;
    bytes.remove_prefix(*sent);
  }
  if (bytes.empty()) return Next::again;
  const iovec left = {const_cast<char*>(bytes.data()), bytes.size()};
  // Without memory for it, it is lost, and what lacks it must not be taken for whole.
  return store(pair.unsent(to), {&left, 1}) ? Next::rest : Next::cut;
}

// store keeps bytes that a side has not taken. False: there is no memory for them.
bool ForwardKeeper::store(Buffer& unsent, std::span<const iovec> parts) noexcept {
  std::size_t end = sizeof(ForwardPair::Part);
  for (const iovec& part : parts) end += part.iov_len;
  if (end == sizeof(ForwardPair::Part)) return true;
  auto taken = Buffer::take(end);
  if (!taken) return false;
  unsent = std::move(*taken);
  ForwardPair::part(unsent) = {sizeof(ForwardPair::Part), static_cast<std::uint32_t>(end)};
  char* to = unsent.data() + sizeof(ForwardPair::Part);
  for (const iovec& part : parts) {
    if (part.iov_len != 0) memcpy(to, part.iov_base, part.iov_len);
    to += part.iov_len;
  }
  return true;
}

// put_trailers ends content in chunks by the trailers that have come behind it.
ForwardKeeper::Next ForwardKeeper::put_trailers(ForwardPair& pair, std::span<char> place) noexcept {
  const auto& kept = *reinterpret_cast<const ForwardPair::Trailers*>(pair.trailers.data());
  const std::string_view text = write_last_chunk(place, {kept.text, pair.content.decoder.trailer_bytes()}, kept.drops);
  pair.trailers.give();
  return put(pair, Side::client, text);
}

void ForwardKeeper::begin(Connection& connection, std::string_view sent, KeptMemory memory) noexcept {
  ForwardPair& pair = pair_of(connection);
  pair.client = &connection;
  pair.moved = pair.client_news = true;
  kernel::probe_peer(connection.stream.fd());
  kernel::probe_peer(pair.lease.stream().fd());
  // Nothing is known of what either has sent meanwhile.
  connection.stream.mark_readable();
  if (pair.tunnel && !sent.empty() && put(pair, Side::upstream, sent) == Next::cut) {
    return end(pair, Next::cut);
  }
  go_on(pair, memory);
}

void ForwardKeeper::serve(Connection& connection, KeptMemory memory) noexcept {
  ForwardPair& pair = pair_of(connection);
  if (connection.awaits == Direction::readable) pair.client_news = true;
  go_on(pair, memory);
}

}  // namespace coir::http
