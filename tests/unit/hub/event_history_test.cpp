// The ring of a feed's latest events: what is held, who has fallen off, where a subscriber resumes; and that its one
// allocation is charged.

#include <CppUTest/TestHarness.h>
#include <coir/ledger.h>

#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>

#include "net/src/hub/history.h"
#include "net/src/stream/event_encoder.h"
#include "tests/support/random.h"

namespace event_history_test {

namespace {

using namespace coir::http;
using namespace std::string_view_literals;

constinit coir::Account g_account("history");

History make(const HistoryLimits& limits) {
  auto history = History::create(limits, g_account);
  CHECK_TRUE(history.has_value());
  return std::move(*history);
}

std::uint64_t add(History& history, std::string_view text) {
  const auto sequence = history.append_parts({&text, 1});
  CHECK_TRUE(sequence.has_value());
  return sequence.value_or(0);
}

// Text is what a history gives from a cursor on, its pieces joined.
struct Text {
  explicit Text(const History::Pieces& pieces) {
    for (const std::string_view piece : pieces) {
      if (!piece.empty()) memcpy(bytes + size, piece.data(), piece.size());
      size += piece.size();
    }
  }
  bool operator==(std::string_view other) const { return std::string_view(bytes, size) == other; }

  char bytes[4096];
  std::size_t size = 0;
};

bool is_at(HistoryCursor cursor, std::uint64_t sequence, std::uint32_t offset) {
  return cursor.sequence == sequence && cursor.offset == offset;
}

}  // namespace

TEST_GROUP(EventHistory) {};

TEST(EventHistory, appended_events_are_read_in_order_by_everybody) {
  History history = make({.bytes = 100, .events = 10});
  const HistoryCursor early = history.newest();
  LONGS_EQUAL(0, add(history, "one,"));
  LONGS_EQUAL(1, add(history, "two,"));
  const HistoryCursor late = history.newest();
  LONGS_EQUAL(2, add(history, "three,"));
  CHECK_TRUE(Text(history.read(early)) == "one,two,three,");
  CHECK_TRUE(Text(history.read(late)) == "three,");
  CHECK_TRUE(Text(history.read(history.newest())) == "");
  LONGS_EQUAL(3, history.events());
  LONGS_EQUAL(14, history.bytes());
}

TEST(EventHistory, a_cursor_advances_by_bytes_and_stands_before_the_next_event) {
  History history = make({.bytes = 100, .events = 10});
  add(history, "one,");
  add(history, "two,");
  add(history, "three,");
  HistoryCursor cursor = history.oldest();
  cursor = history.advance(cursor, 3);
  CHECK_TRUE(is_at(cursor, 0, 3));
  CHECK_TRUE(Text(history.read(cursor)) == ",two,three,");
  cursor = history.advance(cursor, 1);
  CHECK_TRUE(is_at(cursor, 1, 0));
  cursor = history.advance(cursor, 6);
  CHECK_TRUE(is_at(cursor, 2, 2));
  CHECK_TRUE(is_at(history.advance(cursor, 0), 2, 2));
  cursor = history.advance(cursor, 4);
  CHECK_TRUE(is_at(cursor, 3, 0));
  CHECK_TRUE(is_at(history.advance(cursor, 0), 3, 0));
}

TEST(EventHistory, the_oldest_events_make_room_in_bytes) {
  History history = make({.bytes = 10, .events = 10});
  const HistoryCursor start = history.newest();
  add(history, "1111");
  add(history, "2222");
  CHECK_FALSE(history.has_fallen_off(start));
  add(history, "333");
  CHECK_TRUE(history.has_fallen_off(start));
  LONGS_EQUAL(1, history.missed(start));
  CHECK_TRUE(Text(history.read(history.oldest())) == "2222333");
  add(history, "0123456789");
  LONGS_EQUAL(3, history.missed(start));
  CHECK_TRUE(Text(history.read(history.oldest())) == "0123456789");
  CHECK_TRUE(is_at(history.oldest(), 3, 0));
}

TEST(EventHistory, the_oldest_events_make_room_in_number) {
  History history = make({.bytes = 100, .events = 3});
  for (const std::string_view text : {"a", "b", "c", "d", "e"}) add(history, text);
  CHECK_TRUE(Text(history.read(history.oldest())) == "cde");
  LONGS_EQUAL(3, history.events());
  LONGS_EQUAL(2, history.missed({}));
}

TEST(EventHistory, a_cursor_inside_an_event_falls_off_with_it) {
  History history = make({.bytes = 8, .events = 8});
  add(history, "1111");
  add(history, "2222");
  const HistoryCursor inside = history.advance(history.oldest(), 2);
  const HistoryCursor behind = history.advance(history.oldest(), 4);
  add(history, "3");
  CHECK_TRUE(history.has_fallen_off(inside));
  CHECK_FALSE(history.has_fallen_off(behind));
  LONGS_EQUAL(0, history.missed(behind));
}

TEST(EventHistory, a_cursor_at_the_end_falls_off_only_when_what_comes_next_goes) {
  History history = make({.bytes = 4, .events = 8});
  add(history, "1111");
  const HistoryCursor end = history.newest();
  add(history, "2222");
  CHECK_FALSE(history.has_fallen_off(end));
  CHECK_TRUE(Text(history.read(end)) == "2222");
  add(history, "3333");
  CHECK_TRUE(history.has_fallen_off(end));
}

TEST(EventHistory, an_event_larger_than_all_of_it_is_refused_and_nothing_goes) {
  History history = make({.bytes = 8, .events = 8});
  add(history, "1234");
  const std::string_view large = "123456789";
  CHECK_TRUE(history.append_parts({&large, 1}).error() == coir::ErrorCode::limit);
  CHECK_TRUE(history.append({.data = "a long event"}).error() == coir::ErrorCode::limit);
  CHECK_TRUE(Text(history.read(history.oldest())) == "1234");
  const std::string_view empty;
  CHECK_TRUE(history.append_parts({&empty, 1}).error() == coir::ErrorCode::invalid);
  CHECK_TRUE(history.append({.data = "x", .id = "a\nb"}).error() == coir::ErrorCode::invalid);
  LONGS_EQUAL(1, history.events());
}

TEST(EventHistory, parts_are_one_event) {
  History history = make({.bytes = 6, .events = 4});
  add(history, "....");
  const std::string_view parts[] = {"a", "", "bc", "def"};
  LONGS_EQUAL(1, *history.append_parts(parts));
  CHECK_TRUE(Text(history.read(history.oldest())) == "abcdef");
}

TEST(EventHistory, an_event_is_encoded_as_for_one_receiver) {
  const ServerEvent event = {.data = "two\nlines", .type = "t", .id = "41", .retry_ms = 5};
  char memory[100];
  const auto wanted = encode_event(event, memory);
  History history = make({.bytes = 100, .events = 4});
  for (int i = 0; i < 5; ++i) {
    const HistoryCursor before = history.newest();
    CHECK_TRUE(history.append(event).has_value());
    CHECK_TRUE(Text(history.read(before)) == *wanted);
  }
}

TEST(EventHistory, a_subscriber_resumes_behind_its_last_id) {
  History history = make({.bytes = 1000, .events = 4});
  for (const char* id : {"a", "b", "c", "d", "e"}) CHECK_TRUE(history.append({.data = id, .id = id}).has_value());
  CHECK_TRUE(history.after("c").has_value());
  CHECK_TRUE(Text(history.read(*history.after("c"))) == "id: d\ndata: d\n\nid: e\ndata: e\n\n");
  CHECK_TRUE(is_at(*history.after("e"), 5, 0));
  CHECK_FALSE(history.after("a").has_value());
  CHECK_FALSE(history.after("x").has_value());
  CHECK_FALSE(history.after("cc").has_value());
  CHECK_FALSE(history.after("").has_value());
}

TEST(EventHistory, the_latest_of_equal_ids_is_resumed_behind) {
  History history = make({.bytes = 1000, .events = 8});
  for (const char* id : {"a", "a", "b"}) CHECK_TRUE(history.append({.data = "x", .id = id}).has_value());
  CHECK_TRUE(is_at(*history.after("a"), 2, 0));
}

TEST(EventHistory, a_part_of_an_id_is_another_id) {
  History history = make({.bytes = 1000, .events = 8});
  CHECK_TRUE(history.append({.data = "x", .id = "long-id"}).has_value());
  CHECK_FALSE(history.after("long").has_value());
  CHECK_FALSE(history.after("long-id\n").has_value());
  CHECK_TRUE(history.after("long-id").has_value());
}

TEST(EventHistory, events_without_an_id_are_passed_over) {
  History history = make({.bytes = 1000, .events = 8});
  CHECK_TRUE(history.append({.data = "x", .id = "1"}).has_value());
  CHECK_TRUE(history.append({.data = "1"}).has_value());
  CHECK_TRUE(history.append({.data = "1", .id = ""}).has_value());
  add(history, "id: 1\n");
  CHECK_TRUE(is_at(*history.after("1"), 1, 0));
  CHECK_FALSE(history.after("").has_value());
}

TEST(EventHistory, an_id_is_found_wherever_the_ring_cuts_it) {
  for (std::uint32_t bytes = 22; bytes <= 70; ++bytes) {
    History history = make({.bytes = bytes, .events = 8});
    for (unsigned i = 100; i < 130; ++i) {
      char id[16];
      snprintf(id, sizeof id, "long-id-%u", i);
      CHECK_TRUE(history.append({.id = id}).has_value());
      CHECK_TRUE(history.after(id).has_value());
      CHECK_TRUE(is_at(*history.after(id), i - 99, 0));
      snprintf(id, sizeof id, "long-id-%u", i + 1);
      CHECK_FALSE(history.after(id).has_value());
    }
  }
}

// A model of the ring, which holds every byte that was ever appended, is compared at random.
TEST(EventHistory, random_events_are_read_as_they_were_appended) {
  coir::test::Random random{0x415708};
  for (int round = 0; round < 50; ++round) {
    const HistoryLimits limits = {.bytes = 16 + random.below(100), .events = 1 + random.below(9)};
    History history = make(limits);
    static char all[20'000];
    std::size_t size = 0;
    std::size_t starts[400];
    std::size_t first = 0;
    HistoryCursor reader = history.newest();
    std::size_t read = 0;
    for (std::size_t sequence = 0; sequence < 300; ++sequence) {
      const std::size_t bytes = 1 + random.below(16);
      starts[sequence] = size;
      for (std::size_t i = 0; i < bytes; ++i) all[size + i] = static_cast<char>('a' + random.below(26));
      LONGS_EQUAL(sequence, add(history, {all + size, bytes}));
      size += bytes;
      while (sequence - first + 1 > limits.events || size - starts[first] > limits.bytes) ++first;
      LONGS_EQUAL(first, history.oldest().sequence);
      LONGS_EQUAL(sequence + 1, history.newest().sequence);
      CHECK_TRUE(Text(history.read(history.oldest())) == std::string_view(all + starts[first], size - starts[first]));
      if (history.has_fallen_off(reader)) {
        CHECK_TRUE(read < starts[first]);
        reader = history.oldest();
        read = starts[first];
      }
      CHECK_TRUE(read >= starts[first]);
      CHECK_TRUE(Text(history.read(reader)) == std::string_view(all + read, size - read));
      const std::size_t step = random.below(static_cast<std::uint32_t>(size - read) + 1);
      reader = history.advance(reader, step);
      read += step;
    }
  }
}

TEST(EventHistory, its_memory_is_charged_once_and_refunded_at_its_end) {
  constexpr HistoryLimits limits = {.bytes = 1000, .events = 10};
  LONGS_EQUAL(1160, History::memory_bytes(limits));
  LONGS_EQUAL(0, g_account.used());
  {
    History history = make(limits);
    LONGS_EQUAL(1160, g_account.used());
    History moved = std::move(history);
    for (int i = 0; i < 1000; ++i) add(moved, "event");
    LONGS_EQUAL(1160, g_account.used());
  }
  LONGS_EQUAL(0, g_account.used());
}

TEST(EventHistory, a_ceiling_and_limits_of_nothing_refuse_it) {
  g_account.set_ceiling(1000);
  CHECK_TRUE(History::create({.bytes = 1000, .events = 10}, g_account).error() == coir::ErrorCode::no_memory);
  g_account.set_ceiling(SIZE_MAX);
  CHECK_TRUE(History::create({.bytes = 0, .events = 10}, g_account).error() == coir::ErrorCode::invalid);
  CHECK_TRUE(History::create({.bytes = 10, .events = 0}, g_account).error() == coir::ErrorCode::invalid);
  LONGS_EQUAL(0, g_account.used());
}

}  // namespace event_history_test
