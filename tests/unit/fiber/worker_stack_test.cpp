#include <CppUTest/TestHarness.h>
#include <coir/cancel_scope.h>
#include <coir/fiber.h>
#include <coir/inspect.h>
#include <coir/nursery.h>
#include <coir/runtime.h>
#include <coir/worker_stack.h>
#include <string.h>

#include <atomic>
#include <utility>

#include "tests/support/everywhere.h"

namespace worker_stack_test {

using coir::on_worker_stack;
using coir::spawn;
using namespace std::chrono_literals;

namespace {

// deep uses 4 KB of stack for each level, and reads it all back.
__attribute__((noinline)) unsigned deep(unsigned levels) {
  volatile unsigned char page[4096];
  memset(const_cast<unsigned char*>(page), static_cast<int>(levels), sizeof page);
  return levels == 0 ? page[17] : page[4095] + deep(levels - 1);
}
constexpr unsigned kLevels = 24;
constexpr unsigned kSum = kLevels * (kLevels + 1) / 2;

}  // namespace

TEST_GROUP_BASE(WorkerStack, coir::test::Everywhere) {};

TEST(WorkerStack, holds_calls_that_a_fiber_s_stack_does_not) {
  everywhere([&] {
    for (int i = 0; i < 10; ++i) {
      spawn({.stack = 8 * 1024}, [&] {
        for (int k = 0; k < 5; ++k) {
          expect(on_worker_stack([] { return deep(kLevels); }) == kSum);
          coir::yield();
        }
      }).detach();
    }
  });
}

TEST(WorkerStack, returns_what_cannot_be_copied) {
  everywhere([&] {
    struct Only {
      explicit Only(int v) : value(v) {}
      Only(Only&& other) noexcept : value(std::exchange(other.value, 0)) {}
      int value;
    };
    expect(on_worker_stack([] { return Only(7); }).value == 7);
  });
}

TEST(WorkerStack, is_an_ordinary_call_inside_another_and_on_a_thread) {
  LONGS_EQUAL(kSum, on_worker_stack([] { return deep(kLevels); }));
  everywhere([&] { expect(on_worker_stack([] { return on_worker_stack([] { return deep(kLevels); }); }) == kSum); });
}

TEST(WorkerStack, leaves_the_fiber_current_afterwards_and_none_meanwhile) {
  everywhere([&] {
    spawn([&] {
      const auto before = coir::current();
      on_worker_stack([&] { expect(!(coir::current() == before)); });
      expect(coir::current() == before);
      coir::yield();
      expect(coir::current() == before);
    }).detach();
  });
}

TEST(WorkerStack, may_spawn) {
  everywhere([&] {
    static std::atomic<int> ran;
    ran = 0;
    auto fiber = on_worker_stack([] { return spawn([] { ++ran; }); });
    expect(fiber.join().has_value());
    expect(ran == 1);
  });
}

TEST(WorkerStack, a_fiber_spawned_there_is_the_caller_s_child) {
  everywhere([&] {
    const std::uint64_t me = coir::current().id();
    std::atomic<bool> ended{false};
    coir::Nursery nursery;
    on_worker_stack([&] {
      spawn({.name = "child"}, [&] {
        expect(coir::inspect(coir::current())->parent == me);
        for (int i = 0; i < 10; ++i) coir::yield();
        ended = true;
      }).detach();
    });
    expect(nursery.join().has_value());
    expect(ended);
  });
}

TEST(WorkerStack, the_caller_s_scopes_are_in_force_there) {
  everywhere([&] {
    auto fiber = spawn([&] {
      on_worker_stack([&] { expect(!coir::cancelled()); });
      coir::CancelScope scope;
      scope.cancel("enough");
      on_worker_stack([&] {
        expect(coir::cancelled());
        expect(coir::check_cancelled().error().scope == scope.id());
        expect(coir::cancel_reason() != nullptr && strcmp(coir::cancel_reason(), "enough") == 0);
        const coir::Shield shield(coir::Deadline::never());
        expect(!coir::cancelled());
      });
      expect(coir::cancelled());
    });
    expect(fiber.join().has_value());
  });
}

TEST(WorkerStack, a_cancelled_caller_is_cancelled_there) {
  everywhere([&] {
    auto fiber = spawn([&] {
      expect(coir::sleep(24h).error() == coir::ErrorCode::cancelled);
      on_worker_stack([&] {
        expect(coir::cancelled());
        expect(!coir::check_cancelled().has_value());
      });
    });
    coir::yield();
    expect(fiber.cancel().has_value());
    expect(fiber.join().has_value());
  });
}

TEST_GROUP(GiveWay) {};

// A yield alone comes to the timers every 64 switches: 64 slices later.
TEST(GiveWay, lets_a_timer_that_is_due_fire_before_the_next_slice) {
  int slices = 0, slices_at_wake = 0;
  bool over = false;
  const auto ended = coir::run_until_idle({.workers = 1}, [&] {
    spawn([&] {
      static_cast<void>(coir::sleep(5ms));
      slices_at_wake = slices;
      over = true;
    }).detach();
    spawn([&] {
      while (!over && slices < 1000) {
        const auto end = coir::Deadline::after(4ms);
        while (!end.passed()) {
        }
        ++slices;
        coir::yield_to_events();
      }
    }).detach();
  });
  CHECK_TRUE(ended.has_value());
  // The timer is due in the second slice, or in the third by the rounding of ticks; a slice is as long as it takes.
  CHECK_TRUE(slices_at_wake <= 4);
}

}  // namespace worker_stack_test
