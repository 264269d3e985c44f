#pragma once

#include <coir/error.h>
#include <coir/http/wire/server_event.h>
#include <coir/ledger.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string_view>

namespace coir::http {

struct HistoryLimits {
  std::uint32_t bytes = 64 * 1024;  // of all events, encoded
  std::uint32_t events = 256;
};

// HistoryCursor is how far a subscriber has come: `sequence` is the event that it reads, `offset` how many bytes of it
// it has. At an offset of 0 it stands between two events. It is the subscriber's; a history knows none of its cursors.
struct HistoryCursor {
  std::uint64_t sequence = 0;
  std::uint32_t offset = 0;
};

// History holds the latest events of a hub, encoded once for all subscribers: the newest replace the oldest. A subscriber
// that has not read an event when it is replaced has fallen off.
//
//    entries     | 7 | 8 | 9 | 4 | 5 | 6 |             a ring of places; event 10 goes where 4 is, the oldest
//    bytes       |..777|8888888|9|    |444|555555|66|  a ring of bytes; an event may go on at its start
//
// Memory is taken and charged once, at creation, and touched as far as it is used. No locks: whoever shares a history
// guards it. Cost: a copy to append; a cursor costs nothing but itself.
class History {
 public:
  // create charges `account`, which outlives the history, with memory_bytes(limits). Errors: invalid (a limit of 0),
  // no_memory.
  [[nodiscard]] static std::expected<History, Error> create(const HistoryLimits& limits, Account& account) noexcept;
  static constexpr std::size_t memory_bytes(const HistoryLimits& limits) noexcept {
    return std::size_t{limits.events} * sizeof(Entry) + limits.bytes;
  }
  History(History&& other) noexcept;
  History& operator=(History&&) = delete;
  ~History();

  // append adds an event, encoded, and returns its sequence number; events that are in its way are dropped. Errors, and
  // then nothing was dropped: invalid (not is_event), limit (it is larger than all of the history).
  [[nodiscard]] std::expected<std::uint64_t, Error> append(const ServerEvent& event) noexcept;

  // append_parts adds bytes that are encoded already, without an id. Errors: invalid (nothing), limit.
  [[nodiscard]] std::expected<std::uint64_t, Error> append_parts(std::span<const std::string_view> parts) noexcept;

  // forget drops all events: every cursor that there is has fallen off.
  void forget() noexcept { first_ = ++next_; }

  // oldest is before the first event that is held; newest, behind the last: the next event gets this sequence number.
  // Sequence numbers begin at 0 and have no gaps.
  HistoryCursor oldest() const noexcept { return {first_, 0}; }
  HistoryCursor newest() const noexcept { return {next_, 0}; }

  // after is behind the latest event that has this id, for a subscriber that resumes. Nothing: no event that is held
  // has it. Cost: a comparison for each event held.
  std::optional<HistoryCursor> after(std::string_view id) const noexcept;

  // has_fallen_off tells whether events, or bytes of one, are gone that the cursor has not read. How many events of
  // those it has not read to their end are gone is `missed`.
  bool has_fallen_off(HistoryCursor cursor) const noexcept { return cursor.sequence < first_; }
  std::uint64_t missed(HistoryCursor cursor) const noexcept {
    return has_fallen_off(cursor) ? first_ - cursor.sequence : 0;
  }

  // read is all that lies ahead of the cursor, in one or two pieces, the second of which may be empty. Valid until the
  // next append. The cursor has not fallen off.
  using Pieces = std::array<std::string_view, 2>;
  Pieces read(HistoryCursor cursor) const noexcept;

  // advance is the cursor `bytes` further, at most as many as `read` has. It is never at an event's end, but before the
  // next. Cost: a step for each event passed.
  HistoryCursor advance(HistoryCursor cursor, std::size_t bytes) const noexcept;

  // The present content.
  std::size_t events() const noexcept { return static_cast<std::size_t>(next_ - first_); }
  std::size_t bytes() const noexcept { return static_cast<std::size_t>(head_ - start(first_)); }

 private:
  struct Entry {
    std::uint64_t start;     // its place among all bytes that were ever appended
    std::uint32_t id_at;     // where in it its id begins
    std::uint32_t id_bytes;  // 0: it has none
  };

  History(char* memory, const HistoryLimits& limits, Account& account) noexcept
      : entries_(reinterpret_cast<Entry*>(memory)),
        ring_(memory + limits.events * sizeof(Entry)),
        limits_(limits),
        account_(&account) {}

  Entry& entry(std::uint64_t sequence) const noexcept { return entries_[sequence % limits_.events]; }
  std::uint64_t start(std::uint64_t sequence) const noexcept {
    return sequence == next_ ? head_ : entry(sequence).start;
  }
  bool make_room(std::size_t bytes) noexcept;
  void put(std::string_view piece) noexcept;
  std::uint64_t enter(std::uint64_t start, std::size_t id_at, std::size_t id_bytes) noexcept;
  Pieces between(std::uint64_t from, std::uint64_t to) const noexcept;
  bool holds_at(std::uint64_t place, std::string_view text) const noexcept;

  Entry* entries_;  // the start of the allocation
  char* ring_;
  HistoryLimits limits_;
  Account* account_;
  std::uint64_t first_ = 0;  // the oldest event that is held
  std::uint64_t next_ = 0;   // the number of the next
  std::uint64_t head_ = 0;   // bytes ever appended; byte n lies at n % limits_.bytes of the ring
};

}  // namespace coir::http
