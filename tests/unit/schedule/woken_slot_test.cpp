#include <CppUTest/TestHarness.h>
#include <coir/channel.h>
#include <coir/deadline.h>
#include <coir/event.h>
#include <coir/fiber.h>
#include <coir/port/barrier.h>
#include <coir/runtime.h>
#include <stdio.h>
#include <sys/syscall.h>

#include <atomic>

#include "core/src/schedule/woken_slot.h"
#include "tests/support/child.h"
#include "tests/support/until.h"
#include "tests/support/without_syscall.h"

namespace woken_slot_test {

using coir::Channel;
using coir::Deadline;
using coir::Event;
using coir::Fiber;
using coir::spawn;
using namespace std::chrono_literals;

namespace {

constexpr int kRounds = 50, kPairs = 2'000, kNoFilter = 10;

// keep_each_other_awake has a pair wake each other until their wakes are no longer offered to others.
void keep_each_other_awake() {
  Channel<int> there, back;
  Fiber other = spawn([&] {
    while (auto value = there.receive()) static_cast<void>(back.send(*value));
  });
  for (int i = 0; i < kPairs; ++i) {
    static_cast<void>(there.send(i));
    static_cast<void>(back.receive());
  }
  there.close();
  static_cast<void>(other.join());
}

// A woken fiber runs on the second worker although its waker computes for good.
int wake_and_compute() noexcept {
  int served = 0;
  const auto ended = coir::run_until_idle({.workers = 2}, [&] {
    for (; served < kRounds; ++served) {
      if (served % 10 == 0) keep_each_other_awake();
      Event go;
      std::atomic<bool> ran{false};
      Fiber woken = spawn([&] {
        static_cast<void>(go.wait());
        ran = true;
      });
      coir::test::until_parked(woken, "event");
      go.set();
      for (const Deadline end = Deadline::after(30s); !ran && !end.passed();) {
      }
      if (!ran || !woken.join()) return;
    }
  });
  return ended && served == kRounds ? 0 : 11;
}

}  // namespace

TEST_GROUP(WokenSlot) {};

TEST(WokenSlot, a_fiber_whose_waker_computes_runs_on_another_worker) {
  if (coir::kManyWorkers) LONGS_EQUAL(0, coir::test::in_child([] { return wake_and_compute(); }).status);
}

TEST(WokenSlot, on_a_kernel_without_membarrier_too) {
  if (!coir::kManyWorkers) return;
  const int status = coir::test::in_child([] {
                       return coir::test::forget_syscall(SYS_membarrier) ? wake_and_compute() : kNoFilter;
                     }).status;
  if (status == kNoFilter) {
    printf("ok - on a kernel without membarrier too # SKIP no filters of system calls here, as in QEMU\n");
    return;
  }
  LONGS_EQUAL(0, status);
}

// A program may forbid itself system calls while it runs. Without the barrier a raid would be inside beside the owner.
TEST(WokenSlot, a_raid_without_a_barrier_takes_nothing) {
  if (!coir::kManyWorkers) return;
  const int status = coir::test::in_child([] {
                       coir::WokenSlot slot;
                       auto* const fiber = reinterpret_cast<coir::FiberControl*>(64);
                       if (!coir::port::prepare_barrier()) return kNoFilter;
                       static_cast<void>(slot.exchange(fiber));
                       if (!coir::test::forget_syscall(SYS_membarrier)) return kNoFilter;
                       if (slot.steal(fiber) != coir::WokenSlot::Raid::impossible) return 1;
                       return slot.exchange(nullptr) == fiber ? 0 : 2;
                     }).status;
  if (status != kNoFilter) LONGS_EQUAL(0, status);
}

}  // namespace woken_slot_test
