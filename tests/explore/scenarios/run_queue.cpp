#include "schedule/run_queue.h"

#include <cstddef>

#include "schedule/woken_slot.h"
#include "tests/explore/explore.h"

// The run queue between its owner and thieves: every fiber is taken once, by one of them.

namespace coir::explore {

namespace {

constexpr int kMost = 400;

// Fibers that are never run: the queues look at nothing of them but their link.
alignas(FiberControl) constinit std::byte g_fibers[kMost][sizeof(FiberControl)] = {};

FiberControl* fiber(int number) noexcept {
  return reinterpret_cast<FiberControl*>(g_fibers[number]);
}

// Had counts the fibers that were taken out.
struct Had {
  int times[kMost] = {};
  void add(FiberControl* one) noexcept {
    if (one != nullptr) ++times[reinterpret_cast<std::byte(*)[sizeof(FiberControl)]>(one) - g_fibers];
  }
  void check(int count) noexcept {
    for (int i = 0; i < count; ++i) require(times[i] == 1);
    for (int i = count; i < kMost; ++i) require(times[i] == 0);
  }
};

void drain(RunQueue& queue, Had& had) noexcept {
  while (FiberControl* one = queue.pop()) had.add(one);
}

void thieve(RunQueue& from, Had& had) noexcept {
  RunQueue own;
  had.add(from.steal_into(own));
  drain(own, had);
}

void owner_and_thief() {
  RunQueue queue;
  Inbox overflow;
  Had had;
  threads(
      [&] {
        queue.push(fiber(0), overflow);
        queue.push(fiber(1), overflow);
        had.add(queue.pop());
        queue.push(fiber(2), overflow);
        had.add(queue.pop());
      },
      [&] { thieve(queue, had); });
  drain(queue, had);
  had.check(3);
}

void owner_and_two_thieves() {
  RunQueue queue;
  Inbox overflow;
  Had had;
  for (int i = 0; i < 3; ++i) queue.push(fiber(i), overflow);
  threads(
      [&] {
        had.add(queue.pop());
        queue.push(fiber(3), overflow);
      },
      [&] { thieve(queue, had); }, [&] { thieve(queue, had); });
  drain(queue, had);
  had.check(4);
}

// The ring is full: the owner spills half of it while a thief takes half, or the thief comes first and it has room.
void overflow_and_thief() {
  constexpr int kRing = 256;
  RunQueue queue;
  Inbox overflow;
  Had had;
  for (int i = 0; i < kRing; ++i) queue.push(fiber(i), overflow);
  threads([&] { queue.push(fiber(kRing), overflow); }, [&] { thieve(queue, had); });
  drain(queue, had);
  while (FiberControl* one = overflow.pop()) had.add(one);
  had.check(kRing + 1);
}

// A queue that many have passed through: the slots are used again while a thief still reads them.
void slots_are_used_again() {
  constexpr int kRing = 256;
  RunQueue queue;
  Inbox overflow;
  Had had;
  for (int i = 0; i < kRing - 1; ++i) queue.push(fiber(i), overflow);
  for (int i = 0; i < kRing - 3; ++i) had.add(queue.pop());
  threads([&] { thieve(queue, had); },
          [&] {
            had.add(queue.pop());
            for (int i = kRing - 1; i < kRing + 2; ++i) queue.push(fiber(i), overflow);
            had.add(queue.pop());
          });
  drain(queue, had);
  had.check(kRing + 2);
}

void inbox_of_many() {
  Inbox inbox;
  Atomic<std::uint64_t> alive{0};
  Had had;
  threads([&] { inbox.push_counted(fiber(0), alive); }, [&] { inbox.push_counted(fiber(1), alive); },
          [&] {
            // A thread that sees the count sees the fiber in its queue.
            if (alive.load(std::memory_order_acquire) == 2) require(!inbox.empty());
            had.add(inbox.pop());
          });
  while (FiberControl* one = inbox.pop()) had.add(one);
  had.check(2);
}

void steal(WokenSlot& slot, Had& had) noexcept {
  if (FiberControl* const seen = slot.peek(); seen != nullptr && slot.steal(seen) == WokenSlot::Raid::entered)
    had.add(seen);
}

void woken_slot_owner_and_thief() {
  WokenSlot slot;
  Had had;
  threads(
      [&] {
        had.add(slot.exchange(fiber(0)));
        had.add(slot.exchange(fiber(1)));
        had.add(slot.exchange(nullptr));
        had.add(slot.exchange(fiber(2)));
      },
      [&] { steal(slot, had); });
  had.add(slot.exchange(nullptr));
  had.check(3);
}

void woken_slot_owner_and_two_thieves() {
  WokenSlot slot;
  Had had;
  threads(
      [&] {
        had.add(slot.exchange(fiber(0)));
        had.add(slot.exchange(fiber(1)));
      },
      [&] { steal(slot, had); }, [&] { steal(slot, had); });
  had.add(slot.exchange(nullptr));
  had.check(2);
}

constexpr Scenario kRunQueueScenarios[] = {
    {"run_queue_owner_and_thief", owner_and_thief, {.preemptions = 3, .delays = 2}},
    {"run_queue_owner_and_two_thieves", owner_and_two_thieves},
    {"run_queue_overflow_and_thief", overflow_and_thief, {.preemptions = 1, .delays = 0, .samples = 200}},
    {"run_queue_slots_are_used_again", slots_are_used_again, {.preemptions = 2, .samples = 200}},
    {"run_queue_inbox_of_many", inbox_of_many},
    {"woken_slot_owner_and_thief", woken_slot_owner_and_thief, {.preemptions = 3, .delays = 2}},
    {"woken_slot_owner_and_two_thieves", woken_slot_owner_and_two_thieves},
};

}  // namespace

std::span<const Scenario> run_queue_scenarios() noexcept {
  return kRunQueueScenarios;
}

}  // namespace coir::explore
