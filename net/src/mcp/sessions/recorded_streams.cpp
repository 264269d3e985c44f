#include <coir/pressure.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>

#include "base/charged.h"
#include "mcp/sessions/sessions.h"

namespace coir::mcp {

// recorded_streams.cpp: what sessions remember of streams.

void forget(RecordedStream* stream) noexcept {
  give_charged(account::mcp, stream->bytes, stream->capacity);
  destroy_charged(account::mcp, stream);
}

RecordedStream* Sessions::begin_stream(Session& session, std::size_t most_streams,
                                       std::int64_t forget_before_ns) noexcept {
  RecordedStream* forgotten = nullptr;
  {
    Locked locked(lock_);
    std::size_t count = 0;
    RecordedStream* oldest = nullptr;
    for (RecordedStream* each = session.streams.first(); each != nullptr; each = each->next, ++count) {
      if (each->references == 1 && each->finished.load(std::memory_order_relaxed) &&
          (oldest == nullptr || each->ended_ns < oldest->ended_ns)) {
        oldest = each;
      }
    }
    if (oldest != nullptr && (count >= most_streams || oldest->ended_ns < forget_before_ns)) {
      forgotten = oldest;
      session.streams.remove(*oldest);
      --count;
    }
    if (count >= most_streams) return nullptr;
  }
  if (forgotten != nullptr) forget(forgotten);
  auto* const stream = construct_charged<RecordedStream>(account::mcp);
  if (stream == nullptr) return nullptr;
  stream->references = 2;  // the session's, and the caller's
  {
    Locked locked(lock_);
    // Other threads may have begun streams meanwhile.
    std::size_t count = 0;
    for (RecordedStream* each = session.streams.first(); each != nullptr; each = each->next) ++count;
    if (count < most_streams) {
      stream->number = ++session.streams_so_far;
      session.streams.add(*stream);
      return stream;
    }
  }
  forget(stream);
  return nullptr;
}

RecordedStream* Sessions::find_stream(Session& session, std::uint32_t number) noexcept {
  Locked locked(lock_);
  for (RecordedStream* each = session.streams.first(); each != nullptr; each = each->next) {
    if (each->number != number) continue;
    ++each->references;
    return each;
  }
  return nullptr;
}

void Sessions::release_stream(Session&, RecordedStream* stream) noexcept {
  Locked locked(lock_);
  --stream->references;
}

void Sessions::end_stream(Session&, RecordedStream* stream) noexcept {
  {
    Locked locked(lock_);
    stream->finished.store(true, std::memory_order_release);
    stream->ended_ns = monotonic_ns();
  }
  stream->changed.set();
}

// wake_followers refers to the stream that it is at, which keeps that in the session's list.
void Sessions::wake_followers(Session& session) noexcept {
  const auto next = [&](RecordedStream* stream) {
    Locked locked(lock_);
    RecordedStream* const found = stream == nullptr ? session.streams.first() : stream->next;
    if (stream != nullptr) --stream->references;
    if (found != nullptr) ++found->references;
    return found;
  };
  for (RecordedStream* stream = next(nullptr); stream != nullptr; stream = next(stream)) stream->changed.set();
}

void record(RecordedStream& stream, std::string_view event, std::size_t most) noexcept {
  const auto held = stream.mutex.lock();
  if (!held) return;
  const std::size_t wanted = sizeof(std::uint32_t) + event.size();
  ++stream.events;
  if (wanted > most) {
    // Larger than all that is kept: whoever comes again does not get it.
    stream.size = 0;
    stream.dropped = stream.events;
    stream.changed.set();
    return;
  }
  while (stream.size + wanted > most) {
    std::uint32_t first;
    memcpy(&first, stream.bytes, sizeof first);
    const auto gone = static_cast<std::uint32_t>(sizeof first + first);
    memmove(stream.bytes, stream.bytes + gone, stream.size - gone);
    stream.size -= gone;
    ++stream.dropped;
  }
  if (stream.size + wanted > stream.capacity) {
    const std::size_t capacity = std::min(std::max<std::size_t>(stream.size + wanted, stream.capacity * 2u), most);
    const std::size_t more = capacity - stream.capacity;
    char* grown = nullptr;
    if (Pressure::charge(account::mcp, more)) {
      grown = static_cast<char*>(realloc(stream.bytes, capacity));
      if (grown == nullptr) account::mcp.refund(more);
    }
    if (grown == nullptr) {
      stream.size = 0;
      stream.dropped = stream.events;
      stream.changed.set();
      return;
    }
    stream.bytes = grown;
    stream.capacity = static_cast<std::uint32_t>(capacity);
  }
  const auto size = static_cast<std::uint32_t>(event.size());
  memcpy(stream.bytes + stream.size, &size, sizeof size);
  memcpy(stream.bytes + stream.size + sizeof size, event.data(), size);
  stream.size += static_cast<std::uint32_t>(wanted);
  stream.changed.set();
}

std::uint32_t read_recorded(RecordedStream& stream, std::uint32_t after, Text& into) noexcept {
  const auto held = stream.mutex.lock();
  if (!held) return 0;
  std::uint32_t number = stream.dropped;
  for (std::uint32_t at = 0; at < stream.size;) {
    std::uint32_t size;
    memcpy(&size, stream.bytes + at, sizeof size);
    ++number;
    if (number > after) {
      if (!into.write({stream.bytes + at + sizeof size, size})) return 0;
      return number;
    }
    at += static_cast<std::uint32_t>(sizeof size) + size;
  }
  return 0;
}

bool has_recorded(RecordedStream& stream, std::uint32_t after) noexcept {
  const auto held = stream.mutex.lock();
  return held && stream.events > std::max(stream.dropped, after);
}

}  // namespace coir::mcp
