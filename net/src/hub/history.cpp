#include "hub/history.h"

#include <stdlib.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "stream/event_encoder.h"

namespace coir::http {

std::expected<History, Error> History::create(const HistoryLimits& limits, Account& account) noexcept {
  if (limits.bytes == 0 || limits.events == 0) return std::unexpected(ErrorCode::invalid);
  const std::size_t bytes = memory_bytes(limits);
  if (!account.charge(bytes)) return std::unexpected(ErrorCode::no_memory);
  char* const memory = static_cast<char*>(malloc(bytes));
  if (memory == nullptr) {
    account.refund(bytes);
    return std::unexpected(ErrorCode::no_memory);
  }
  return History(memory, limits, account);
}

History::History(History&& other) noexcept
    : entries_(std::exchange(other.entries_, nullptr)),
      ring_(other.ring_),
      limits_(other.limits_),
      account_(other.account_),
      first_(other.first_),
      next_(other.next_),
      head_(other.head_) {}

History::~History() {
  if (entries_ == nullptr) return;
  free(entries_);
  account_->refund(memory_bytes(limits_));
}

std::expected<std::uint64_t, Error> History::append(const ServerEvent& event) noexcept {
  if (!is_event(event)) return std::unexpected(ErrorCode::invalid);
  if (!make_room(encoded_bytes(event))) return std::unexpected(ErrorCode::limit);
  const std::uint64_t start = head_;
  EventEncoder encoder(event);
  for (std::string_view piece = encoder.next(); !piece.empty(); piece = encoder.next()) put(piece);
  return enter(start, kEventIdAt, event.id.size());
}

std::expected<std::uint64_t, Error> History::append_parts(std::span<const std::string_view> parts) noexcept {
  std::size_t bytes = 0;
  for (const std::string_view part : parts) bytes += part.size();
  if (bytes == 0) return std::unexpected(ErrorCode::invalid);
  if (!make_room(bytes)) return std::unexpected(ErrorCode::limit);
  const std::uint64_t start = head_;
  for (const std::string_view part : parts) put(part);
  return enter(start, 0, 0);
}

// make_room drops the oldest events until one of `bytes` fits. False: it never would.
bool History::make_room(std::size_t bytes) noexcept {
  if (bytes > limits_.bytes) return false;
  while (events() == limits_.events || this->bytes() > limits_.bytes - bytes) ++first_;
  return true;
}

void History::put(std::string_view piece) noexcept {
  while (!piece.empty()) {
    const auto at = static_cast<std::size_t>(head_ % limits_.bytes);
    const std::size_t here = std::min(piece.size(), limits_.bytes - at);
    std::memcpy(ring_ + at, piece.data(), here);
    piece.remove_prefix(here);
    head_ += here;
  }
}

std::uint64_t History::enter(std::uint64_t start, std::size_t id_at, std::size_t id_bytes) noexcept {
  entry(next_) = {start, static_cast<std::uint32_t>(id_at), static_cast<std::uint32_t>(id_bytes)};
  return next_++;
}

std::optional<HistoryCursor> History::after(std::string_view id) const noexcept {
  if (id.empty()) return std::nullopt;
  for (std::uint64_t sequence = next_; sequence != first_; --sequence) {
    const Entry& at = entry(sequence - 1);
    if (at.id_bytes == id.size() && holds_at(at.start + at.id_at, id)) return HistoryCursor{sequence, 0};
  }
  return std::nullopt;
}

// holds_at compares with bytes of the ring, which may go on at its start.
bool History::holds_at(std::uint64_t place, std::string_view text) const noexcept {
  const auto [head, tail] = between(place, place + text.size());
  return std::memcmp(head.data(), text.data(), head.size()) == 0 &&
         std::memcmp(tail.data(), text.data() + head.size(), tail.size()) == 0;
}

History::Pieces History::between(std::uint64_t from, std::uint64_t to) const noexcept {
  const auto at = static_cast<std::size_t>(from % limits_.bytes);
  const auto size = static_cast<std::size_t>(to - from);
  const std::size_t here = std::min(size, limits_.bytes - at);
  return {std::string_view(ring_ + at, here), std::string_view(ring_, size - here)};
}

History::Pieces History::read(HistoryCursor cursor) const noexcept {
  return between(start(cursor.sequence) + cursor.offset, head_);
}

HistoryCursor History::advance(HistoryCursor cursor, std::size_t bytes) const noexcept {
  const std::uint64_t place = start(cursor.sequence) + cursor.offset + bytes;
  while (cursor.sequence != next_ && start(cursor.sequence + 1) <= place) ++cursor.sequence;
  cursor.offset = static_cast<std::uint32_t>(place - start(cursor.sequence));
  return cursor;
}

}  // namespace coir::http
