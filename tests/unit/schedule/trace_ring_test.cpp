#include <CppUTest/TestHarness.h>

#include <atomic>

#include "core/src/schedule/trace_ring.h"
#include "tests/support/scale.h"
#include "tests/support/thread.h"

namespace trace_ring_test {

using coir::TraceEvent;
using coir::TraceKind;
using coir::TraceRing;
using coir::WaitKind;

namespace {

constexpr std::size_t kSlots = 8;

// Each word of an event tells which one it belongs to.
TraceEvent event_of(std::uint64_t n) {
  return {.at_ns = n,
          .fiber = n + 1,
          .kind = static_cast<TraceKind>(n % 8),
          .wait = static_cast<WaitKind>(n % 16),
          .name = static_cast<std::uint16_t>(n % 1000),
          .object = n + 2,
          .flow = n + 3,
          .since_ns = n + 4};
}

bool is(const TraceEvent& event, std::uint64_t n) {
  const TraceEvent wanted = event_of(n);
  return event.at_ns == wanted.at_ns && event.fiber == wanted.fiber && event.kind == wanted.kind &&
         event.wait == wanted.wait && event.name == wanted.name && event.object == wanted.object &&
         event.flow == wanted.flow && event.since_ns == wanted.since_ns;
}

}  // namespace

TEST_GROUP(TraceRing) {
  alignas(64) unsigned char memory[kSlots * TraceRing::kEventBytes] = {};
  TraceRing ring;
  void setup() override { ring.use(memory, sizeof memory); }
};

TEST(TraceRing, entries_are_read_in_the_order_of_their_push) {
  for (std::uint64_t n = 0; n < kSlots - 1; ++n) ring.push(event_of(n));
  LONGS_EQUAL(kSlots - 1, ring.written());
  LONGS_EQUAL(0, ring.first());
  for (std::uint64_t n = 0; n < kSlots - 1; ++n) {
    TraceEvent event;
    CHECK_TRUE(ring.read(n, event));
    CHECK_TRUE(is(event, n));
  }
}

TEST(TraceRing, a_full_ring_keeps_the_latest_and_refuses_what_is_gone) {
  for (std::uint64_t n = 0; n < 100; ++n) ring.push(event_of(n));
  LONGS_EQUAL(100, ring.written());
  LONGS_EQUAL(100 - kSlots + 1, ring.first());
  TraceEvent event;
  for (std::uint64_t n = ring.first(); n < ring.written(); ++n) {
    CHECK_TRUE(ring.read(n, event));
    CHECK_TRUE(is(event, n));
  }
  CHECK_FALSE(ring.read(ring.first() - 1, event));
}

TEST(TraceRing, an_event_is_read_whole_or_not_at_all) {
  ring.use(memory, 2 * TraceRing::kEventBytes);  // so that the writer is never far
  std::atomic<bool> over{false};
  std::uint64_t whole = 0, torn = 0;
  {
    coir::test::Thread writer([&] {
      for (std::uint64_t n = 0; !over; ++n) ring.push(event_of(n));
    });
    while (ring.written() == 0) {
    }
    for (int i = 0; i < coir::test::scaled({200'000, 50'000, 20'000, 20'000}); ++i) {
      const std::uint64_t n = ring.first();  // the next to be overwritten
      TraceEvent event;
      if (!ring.read(n, event)) continue;
      ++whole;
      torn += !is(event, n);
    }
    over = true;
  }
  LONGS_EQUAL(0, torn);
  CHECK_TRUE(whole > 0);
}

}  // namespace trace_ring_test
