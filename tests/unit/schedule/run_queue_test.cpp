#include "core/src/schedule/run_queue.h"

#include <CppUTest/TestHarness.h>
#include <pthread.h>
#include <string.h>

#include <atomic>

#include "tests/support/scale.h"

#include <coir/config.h>

namespace run_queue_test {

using coir::FiberControl;
using coir::FiberList;
using coir::Inbox;
using coir::RunQueue;
using coir::test::scaled;

namespace {

constexpr std::uint32_t kFibers = 2'000;

// Control blocks come into being as stacks do: as zeroed memory.
alignas(FiberControl) char g_memory[kFibers][sizeof(FiberControl)];

FiberControl* fiber(std::uint32_t index) {
  return reinterpret_cast<FiberControl*>(g_memory[index]);
}
std::uint32_t index_of(const FiberControl* control) {
  return static_cast<std::uint32_t>(reinterpret_cast<const char(*)[sizeof(FiberControl)]>(control) - g_memory);
}

}  // namespace

TEST_GROUP(FiberList) {
  FiberList list;
  void setup() override { memset(static_cast<void*>(g_memory), 0, sizeof g_memory); }
};

TEST(FiberList, first_in_first_out) {
  POINTERS_EQUAL(nullptr, list.pop());
  for (int round = 0; round < 3; ++round) {
    for (std::uint32_t i = 0; i < 10; ++i) list.push(fiber(i));
    for (std::uint32_t i = 0; i < 10; ++i) POINTERS_EQUAL(fiber(i), list.pop());
    CHECK_TRUE(list.empty());
    POINTERS_EQUAL(nullptr, list.pop());
  }
}

TEST(FiberList, the_nth_is_taken_out_and_the_rest_keeps_its_order) {
  for (std::uint32_t i = 0; i < 5; ++i) list.push(fiber(i));
  POINTERS_EQUAL(fiber(2), list.take_nth(2));
  POINTERS_EQUAL(fiber(4), list.take_nth(100));  // the last, for want of more
  list.push(fiber(5));
  POINTERS_EQUAL(fiber(0), list.take_nth(0));
  POINTERS_EQUAL(fiber(1), list.pop());
  POINTERS_EQUAL(fiber(3), list.pop());
  POINTERS_EQUAL(fiber(5), list.take_nth(7));
  POINTERS_EQUAL(nullptr, list.take_nth(0));
}

TEST_GROUP(RunQueue) {
  RunQueue* queue = new RunQueue;
  Inbox overflow;
  void setup() override { memset(static_cast<void*>(g_memory), 0, sizeof g_memory); }
  void teardown() override { delete queue; }
};

TEST(RunQueue, first_in_first_out_round_after_round) {
  for (int round = 0; round < 100; ++round) {
    for (std::uint32_t i = 0; i < 100; ++i) queue->push(fiber(i), overflow);
    CHECK_FALSE(queue->empty());
    for (std::uint32_t i = 0; i < 100; ++i) POINTERS_EQUAL(fiber(i), queue->pop());
    CHECK_TRUE(queue->empty());
    POINTERS_EQUAL(nullptr, queue->pop());
  }
}

TEST(RunQueue, fibers_that_do_not_fit_are_in_the_overflow_each_once) {
  static int seen[kFibers];
  memset(seen, 0, sizeof seen);
  for (std::uint32_t i = 0; i < kFibers; ++i) queue->push(fiber(i), overflow);
  std::uint32_t count = 0;
  while (FiberControl* next = queue->pop()) ++seen[index_of(next)], ++count;
  while (FiberControl* next = overflow.pop()) ++seen[index_of(next)], ++count;
  LONGS_EQUAL(kFibers, count);
  for (int times : seen) LONGS_EQUAL(1, times);
  CHECK_TRUE(overflow.empty());
}

TEST(RunQueue, the_nth_is_taken_and_none_is_lost) {
  static int seen[kFibers];
  memset(seen, 0, sizeof seen);
  for (std::uint32_t i = 0; i < 50; ++i) queue->push(fiber(i), overflow);
  for (std::uint32_t i = 0; i < 50; ++i) ++seen[index_of(queue->take_nth(i * 7 % 8))];
  for (std::uint32_t i = 0; i < 50; ++i) LONGS_EQUAL(1, seen[i]);
  POINTERS_EQUAL(nullptr, queue->take_nth(3));
}

#if !COIR_SINGLE_WORKER
TEST(RunQueue, a_thief_takes_the_older_half_rounded_up) {
  RunQueue* thief = new RunQueue;
  for (std::uint32_t i = 0; i < 9; ++i) queue->push(fiber(i), overflow);
  POINTERS_EQUAL(fiber(4), queue->steal_into(*thief));  // 0..4; one of them to be run at once
  for (std::uint32_t i = 0; i < 4; ++i) POINTERS_EQUAL(fiber(i), thief->pop());
  POINTERS_EQUAL(nullptr, thief->pop());
  for (std::uint32_t i = 5; i < 9; ++i) POINTERS_EQUAL(fiber(i), queue->pop());
  POINTERS_EQUAL(nullptr, queue->steal_into(*thief));
  queue->push(fiber(1), overflow);
  POINTERS_EQUAL(fiber(1), queue->steal_into(*thief));
  delete thief;
}

namespace {

constexpr int kThieves = 3;

struct Chase {
  RunQueue queue;
  Inbox overflow;
  std::atomic<std::uint32_t> taken{0};
  std::atomic<std::uint32_t> seen[kFibers] = {};
  std::atomic<bool> over{false};

  void take(FiberControl* control) {
    seen[index_of(control)].fetch_add(1, std::memory_order_relaxed);
    taken.fetch_add(1, std::memory_order_release);
  }

  static void* steal(void* self) {
    auto& chase = *static_cast<Chase*>(self);
    auto* const own = new RunQueue;
    while (!chase.over.load(std::memory_order_acquire)) {
      if (FiberControl* got = chase.queue.steal_into(*own); got != nullptr) chase.take(got);
      while (FiberControl* got = own->pop()) chase.take(got);
      if (FiberControl* got = chase.overflow.pop(); got != nullptr) chase.take(got);
    }
    delete own;
    return nullptr;
  }
};

}  // namespace

// The owner pushes and pops while thieves steal: in every round each fiber comes out exactly once.
TEST(RunQueue, nothing_is_lost_or_doubled_between_owner_and_thieves) {
  auto* const chase = new Chase;
  pthread_t threads[kThieves];
  for (pthread_t& thread : threads) pthread_create(&thread, nullptr, Chase::steal, chase);
  constexpr std::uint32_t kRounds = scaled({500, 100, 30, 30});
  std::uint32_t wrong = 0;
  for (std::uint32_t round = 1; round <= kRounds; ++round) {
    for (std::uint32_t i = 0; i < kFibers; ++i) {
      chase->queue.push(fiber(i), chase->overflow);
      if (i % 3 == 0) {
        if (FiberControl* got = chase->queue.pop(); got != nullptr) chase->take(got);
      }
    }
    while (FiberControl* got = chase->queue.pop()) chase->take(got);
    while (chase->taken.load(std::memory_order_acquire) < round * kFibers) sched_yield();
    for (auto& times : chase->seen) wrong += times.load(std::memory_order_relaxed) != round;
  }
  chase->over = true;
  for (pthread_t thread : threads) pthread_join(thread, nullptr);
  delete chase;
  LONGS_EQUAL(0, wrong);
}
#endif

}  // namespace run_queue_test
