#include <CppUTest/TestHarness.h>
#include <coir/fiber.h>
#include <coir/ledger.h>
#include <coir/runtime.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include <array>
#include <atomic>
#include <memory>

#include "core/src/wait/park.h"
#include "tests/support/counted.h"
#include "tests/support/scale.h"
#include "tests/support/until.h"

namespace fiber_test {

using coir::ErrorCode;
using coir::Fiber;
using coir::FiberRef;
using coir::kManyWorkers;
using coir::run_until_idle;
using coir::spawn;
using coir::operator""_KiB;
using coir::test::Counted;
using coir::test::kAddressSanitized;
using coir::test::kThreadSanitized;
using coir::test::until;

TEST_GROUP(Fiber) {
  void setup() override { Counted::reset(); }  // namespace fiber_test
};

TEST(Fiber, a_spawned_one_runs_once_and_after_its_spawner_goes_on) {
  int runs = 0, at_spawn = -1;
  const auto ended = run_until_idle({.workers = 1}, [&] {
    Fiber fiber = spawn([&] { ++runs; });
    at_spawn = runs;
    static_cast<void>(fiber.join());
  });
  CHECK_TRUE(ended.has_value());
  LONGS_EQUAL(0, at_spawn);
  LONGS_EQUAL(1, runs);
}

TEST(Fiber, ids_are_unique_and_none_is_zero) {
  constexpr int kFibers = 500;
  static std::uint64_t ids[kFibers + 1];
  const auto ended = run_until_idle({.workers = 2}, [&] {
    ids[kFibers] = coir::current().id();
    for (int i = 0; i < kFibers; ++i) {
      Fiber fiber = spawn([i] { ids[i] = coir::current().id(); });
      const std::uint64_t told = fiber.id();
      static_cast<void>(fiber.join());
      if (told != ids[i]) ids[i] = 0;
    }
  });
  CHECK_TRUE(ended.has_value());
  LONGS_EQUAL(0, coir::current().id());
  for (int i = 0; i <= kFibers; ++i) {
    CHECK_TRUE(ids[i] != 0);
    for (int j = 0; j < i; ++j) CHECK_TRUE(ids[i] != ids[j]);
  }
}

TEST(Fiber, current_names_the_fiber_that_calls) {
  bool same = false, other = true;
  const auto ended = run_until_idle({.workers = 1}, [&] {
    const FiberRef main = coir::current();
    FiberRef seen;
    Fiber fiber = spawn([&] { seen = coir::current(); });
    const FiberRef told = fiber;
    static_cast<void>(fiber.join());
    same = seen == told;
    other = seen == main;
  });
  CHECK_TRUE(ended.has_value());
  CHECK_TRUE(same);
  CHECK_FALSE(other);
}

TEST(Fiber, the_closure_moves_in_and_is_destroyed_once_when_its_body_ends) {
  int number = 0, alive_after_join = -1, ended_within = -1;
  const auto ended = run_until_idle({.workers = 2}, [&] {
    Counted value(42);
    auto owned = std::make_unique<int>(7);
    Fiber fiber =
        spawn([&number, value = std::move(value), owned = std::move(owned)] { number = value.number() + *owned; });
    static_cast<void>(fiber.join());
    ended_within = Counted::ended();
    alive_after_join = Counted::alive();
  });
  CHECK_TRUE(ended.has_value());
  LONGS_EQUAL(49, number);
  LONGS_EQUAL(1, ended_within);
  LONGS_EQUAL(1, alive_after_join);  // the moved-from local
  LONGS_EQUAL(0, Counted::alive());
}

TEST(Fiber, a_closure_of_half_the_stack_fits_and_a_larger_one_is_refused) {
  std::size_t sum = 0;
  bool refused = false, started = true, untouched = false;
  const auto ended = run_until_idle({.workers = 1}, [&] {
    std::array<unsigned char, 3'900> fits;
    fits.fill(1);
    static_cast<void>(spawn({.stack = 8_KiB}, [&sum, fits] {
                        for (const unsigned char byte : fits) sum += byte;
                      }).join());
    std::array<unsigned char, 5'000> large{};
    Counted value(1);
    Fiber fiber = spawn({.stack = 8_KiB}, [large, value = std::move(value)] { static_cast<void>(large[0]); });
    started = fiber.started();
    const auto joined = fiber.join();
    refused = !joined && joined.error() == ErrorCode::invalid;
    untouched = Counted::alive() == 1;
  });
  CHECK_TRUE(ended.has_value());
  LONGS_EQUAL(3'900, sum);
  CHECK_FALSE(started);
  CHECK_TRUE(refused);
  CHECK_TRUE(untouched);
}

TEST(Fiber, a_stack_is_rounded_up_to_its_class_and_beyond_the_largest_refused) {
  constexpr std::size_t kAsked[] = {1, 8_KiB, 8_KiB + 1, 16_KiB, 20_KiB, 32_KiB, 33_KiB, 64_KiB};
  constexpr int kClass[] = {0, 0, 1, 1, 2, 2, 3, 3};
  int got[8] = {};
  bool refused = false;
  const auto ended = run_until_idle({.workers = 1}, [&] {
    for (int i = 0; i < 8; ++i) {
      static_cast<void>(spawn({.stack = kAsked[i]}, [&got, i] { got[i] = coir::running_fiber()->stack_class; }).join());
    }
    const auto joined = spawn({.stack = 64_KiB + 1}, [] {}).join();
    refused = !joined && joined.error() == ErrorCode::invalid;
  });
  CHECK_TRUE(ended.has_value());
  for (int i = 0; i < 8; ++i) LONGS_EQUAL(kClass[i], got[i]);
  CHECK_TRUE(refused);
}

namespace {

// touch_stack uses about `bytes` of the calling fiber's stack.
[[gnu::noinline]] int touch_stack(std::size_t bytes) {
  volatile char frame[256];
  for (volatile char& byte : frame) byte = static_cast<char>(bytes);
  const int deeper = bytes > 512 ? touch_stack(bytes - 384) : 0;
  return deeper + frame[17];
}

}  // namespace

TEST(Fiber, nine_tenths_of_every_class_can_be_used) {
  int used = 0;
  const auto ended = run_until_idle({.workers = 1}, [&] {
    for (std::size_t stack = 8_KiB; stack <= 64_KiB; stack *= 2) {
      static_cast<void>(spawn({.stack = stack}, [&used, stack] {
                          touch_stack(stack * 8 / 10);
                          ++used;
                        }).join());
    }
  });
  CHECK_TRUE(ended.has_value());
  LONGS_EQUAL(4, used);
}

TEST(Fiber, a_handle_tells_whether_its_fiber_lives) {
  bool alive_before = false, done_before = true, alive_after = true, done_after = false, alive_joined = true;
  const auto ended = run_until_idle({.workers = 1}, [&] {
    Fiber fiber = spawn([] {});
    const FiberRef ref = fiber;
    alive_before = ref.alive();
    done_before = fiber.done();
    coir::yield();
    alive_after = ref.alive();
    done_after = fiber.done();
    static_cast<void>(fiber.join());
    alive_joined = ref.alive();
  });
  CHECK_TRUE(ended.has_value());
  CHECK_TRUE(alive_before);
  CHECK_FALSE(done_before);
  CHECK_FALSE(alive_after);
  CHECK_TRUE(done_after);
  CHECK_FALSE(alive_joined);
  CHECK_FALSE(FiberRef().alive());
}

TEST(Fiber, a_handle_that_outlives_the_run_is_stale_and_harmless) {
  Fiber kept;
  FiberRef ref;
  const auto ended = run_until_idle({.workers = 1}, [&] {
    kept = spawn([] {});
    ref = kept;
  });
  CHECK_TRUE(ended.has_value());
  CHECK_TRUE(kept.done());
  CHECK_FALSE(ref.alive());
  const auto cancelled = ref.cancel();
  CHECK_TRUE(!cancelled && cancelled.error() == ErrorCode::stale);
  // Another run uses the same stack for another fiber.
  bool survived = false;
  const auto again = run_until_idle({.workers = 1}, [&] {
    Fiber fiber = spawn([] { coir::yield(); });
    kept = Fiber();
    survived = fiber.alive();
    static_cast<void>(fiber.join());
  });
  CHECK_TRUE(again.has_value());
  CHECK_TRUE(survived);
}

// 64 KiB stacks are the fewest; each parked fiber holds one page.
TEST(Fiber, at_the_capacity_spawn_tells_limit_and_recovers_when_one_ends) {
  if (kThreadSanitized) return;  // its run-time library has fewer fibers than that
  constexpr std::size_t kMost = 16384 + 1;
  auto* const fibers = new Fiber[kMost];
  std::size_t started = 0, joined = 0;
  bool limit = false, recovered = false, other_class = false;
  const auto ended = run_until_idle({.workers = 2, .hot_stacks = 8}, [&] {
    const auto hold = [] { static_cast<void>(coir::sleep_until(coir::Deadline::never())); };
    for (; started < kMost; ++started) {
      fibers[started] = spawn({.stack = 64_KiB}, hold);
      if (!fibers[started].started()) break;
    }
    const auto refused = started < kMost ? fibers[started].join() : std::expected<void, coir::Error>();
    limit = !refused && refused.error() == ErrorCode::limit;
    other_class = spawn({.stack = 8_KiB}, [] {}).join().has_value();
    static_cast<void>(fibers[5].cancel());
    static_cast<void>(fibers[5].join());
    fibers[5] = spawn({.stack = 64_KiB}, hold);
    recovered = fibers[5].started();
    for (std::size_t i = 0; i < started; ++i) {
      static_cast<void>(fibers[i].cancel());
      joined += fibers[i].join().has_value();
    }
  });
  delete[] fibers;
  CHECK_TRUE(ended.has_value());
  CHECK_TRUE(limit);
  CHECK_TRUE(other_class);
  CHECK_TRUE(recovered);
  LONGS_EQUAL(started, joined);
}

namespace {

struct Outsider {
  std::atomic<int> ran{0};
  std::atomic<bool> over{false};
  int joined = 0;

  static void* spawn_from_thread(void* self) {
    auto& outsider = *static_cast<Outsider*>(self);
    for (int i = 0; i < 200; ++i) {
      Fiber fiber = spawn([&] {
        coir::yield();
        ++outsider.ran;
      });
      if (i % 2 == 0) {
        fiber.detach();
      } else {
        outsider.joined += fiber.join().has_value();
      }
    }
    outsider.over = true;
    return nullptr;
  }
};

}  // namespace

TEST(Fiber, a_plain_thread_spawns_and_joins_while_the_runtime_runs) {
  if (!kManyWorkers) return;
  for (const unsigned workers : {1u, 2u}) {
    Outsider outsider;
    const auto ended = run_until_idle({.workers = workers}, [&] {
      pthread_t thread;
      pthread_create(&thread, nullptr, Outsider::spawn_from_thread, &outsider);
      until([&] { return outsider.over.load(); });
      pthread_join(thread, nullptr);
    });
    CHECK_TRUE(ended.has_value());
    LONGS_EQUAL(200, outsider.ran);
    LONGS_EQUAL(100, outsider.joined);
  }
}

TEST(Fiber, without_a_runtime_spawn_is_refused) {
  Fiber fiber = spawn([] {});
  CHECK_FALSE(fiber.started());
  const auto joined = fiber.join();
  CHECK_TRUE(!joined && joined.error() == ErrorCode::unsupported);
}

TEST(Fiber, an_empty_handle_is_stale) {
  Fiber fiber;
  CHECK_FALSE(fiber.started());
  const auto joined = fiber.join();
  CHECK_TRUE(!joined && joined.error() == ErrorCode::stale);
  const auto cancelled = fiber.cancel();
  CHECK_TRUE(!cancelled && cancelled.error() == ErrorCode::stale);
  fiber.detach();
}

// One worker is busy while the other runs fibers to their end, and then spawns as many itself.
TEST(Fiber, a_spawn_finds_the_unused_stacks_of_another_worker) {
  if (!coir::kManyWorkers) return;
  constexpr int kFibers = 6;
  constexpr std::size_t kStack = 16'384;
  for (const std::size_t wanted : {kStack, 2 * kStack}) {
    int started = 0;
    const auto ran = coir::run_until_idle({.workers = 2, .default_stack = kStack}, [&] {
      const std::size_t bytes = kStack * coir::kStackInflation;
      coir::account::stacks.set_ceiling(coir::account::stacks.used() + (kFibers + 1) * bytes);
      std::atomic<int> ended{0};
      for (int i = 0; i < kFibers; ++i) coir::spawn([&] { ++ended; }).detach();
      while (coir::stats().fibers_alive > 1) sched_yield();
      for (int i = 0; i < kFibers / 2; ++i) {
        coir::Fiber fiber = coir::spawn({.stack = wanted}, [] {});
        started += fiber.started();
        fiber.detach();
      }
    });
    coir::account::stacks.set_ceiling(SIZE_MAX);
    CHECK_TRUE(ran.has_value());
    LONGS_EQUAL(kFibers / 2, started);
  }
}

}  // namespace fiber_test
