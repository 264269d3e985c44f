#include "core/src/fiber/stack_pool.h"

#include <CppUTest/TestHarness.h>
#include <coir/ledger.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <atomic>
#include <cstring>
#include <utility>

#include <coir/port/memory.h>

#include "tests/support/child.h"
#include "tests/support/without_syscall.h"

namespace stack_pool_test {

using coir::Error;
using coir::ErrorCode;
using coir::FiberControl;
using coir::GuardMode;
using coir::StackArena;
using coir::StackCache;
using coir::StackPool;

namespace {

constexpr std::uint32_t kCapacity = 64;

// An arena is never torn down in a program: its address space outlives the test.
StackArena& fresh_arena(std::size_t stack_class) {
  static StackArena arenas[16];
  static int next = 0;
  StackArena& arena = arenas[next++];
  arena.prepare(stack_class, kCapacity, 1'000);
  return arena;
}

// Called once while a thread is in madvise.
void (*g_in_madvise)() = nullptr;

}  // namespace

extern "C" int __real_madvise(void* start, size_t bytes, int advice);
extern "C" int __wrap_madvise(void* start, size_t bytes, int advice) {
  if (g_in_madvise != nullptr) std::exchange(g_in_madvise, nullptr)();
  return __real_madvise(start, bytes, advice);
}

TEST_GROUP(StackPool) {
  Error error{};

  FiberControl* acquire(StackArena& arena) {
    FiberControl* const control = arena.acquire(error);
    CHECK_TRUE(control != nullptr);
    return control;
  }
};

TEST(StackPool, slots_are_dense_and_the_lowest_comes_first) {
  for (std::size_t stack_class = 0; stack_class < coir::kStackClassCount; ++stack_class) {
    StackArena& arena = fresh_arena(stack_class);
    auto* const first = reinterpret_cast<char*>(acquire(arena));
    for (std::size_t i = 1; i < 10; ++i) {
      POINTERS_EQUAL(first + i * (arena.stack_bytes() + StackArena::kGuardBytes), acquire(arena));
    }
    UNSIGNED_LONGS_EQUAL(coir::nominal_stack_bytes(stack_class) * coir::kStackInflation, arena.stack_bytes());
    LONGS_EQUAL(10, arena.used());
  }
}

TEST(StackPool, at_the_capacity_it_is_limit_until_one_comes_back) {
  StackArena& arena = fresh_arena(0);
  FiberControl* slots[kCapacity];
  for (FiberControl*& slot : slots) slot = acquire(arena);
  POINTERS_EQUAL(nullptr, arena.acquire(error));
  CHECK_TRUE(error == ErrorCode::limit);
  arena.cool(slots[7]);
  arena.cool(slots[3]);
  POINTERS_EQUAL(slots[3], acquire(arena));
  POINTERS_EQUAL(slots[7], acquire(arena));
  POINTERS_EQUAL(nullptr, arena.acquire(error));
}

TEST(StackPool, a_cooled_stack_has_given_its_pages_back) {
  StackArena& arena = fresh_arena(1);
  FiberControl* const slot = acquire(arena);
  char* const low = StackArena::low_end(slot, arena.stack_bytes());
  std::memset(low, 0x5a, arena.stack_bytes() - sizeof(FiberControl));
  arena.cool(slot);
  POINTERS_EQUAL(slot, acquire(arena));
  std::size_t dirty = 0;
  for (std::size_t i = 0; i < arena.stack_bytes() - sizeof(FiberControl); ++i) dirty += low[i] != 0;
  LONGS_EQUAL(0, dirty);
}

// A thread may lose its CPU in the kernel: another needs the arena meanwhile.
TEST(StackPool, pages_go_back_to_the_kernel_without_the_lock) {
  const auto end = coir::test::in_child([] {
    static StackArena& arena = fresh_arena(2);
    static FiberControl* others = nullptr;
    Error refused{};
    FiberControl* const one = arena.acquire(refused);
    FiberControl* const other = arena.acquire(refused);
    arena.cool(one);
    g_in_madvise = [] {
      Error none{};
      others = arena.acquire(none);
    };
    arena.cool(other);
    return others == one ? 0 : 1;
  });
  LONGS_EQUAL(0, end.signal);
  LONGS_EQUAL(0, end.status);
}

namespace {

// Looker visits an arena, as reports do, on a thread of its own.
struct Looker {
  const StackArena& arena;
  std::atomic<std::uint64_t> seen{0};
  std::atomic<bool> stop{false};

  static void* look(void* argument) {
    Looker& self = *static_cast<Looker*>(argument);
    while (!self.stop.load(std::memory_order_relaxed)) {
      self.arena.for_each([&](FiberControl& each) {
        self.seen.fetch_add(1 + each.id.load(std::memory_order_relaxed), std::memory_order_relaxed);
      });
    }
    return nullptr;
  }
};

}  // namespace

TEST(StackPool, a_slot_may_be_looked_at_while_it_is_cooled_on_a_kernel_without_madvise) {
  constexpr int kNoFilter = 77;
  const auto end = coir::test::in_child([] {
    if (!coir::test::forget_syscall(SYS_madvise)) return kNoFilter;
    StackArena& arena = fresh_arena(0);
    Error refused{};
    FiberControl* const slot = arena.acquire(refused);
    Looker looker{arena};
    pthread_t thread;
    if (pthread_create(&thread, nullptr, Looker::look, &looker) != 0) return 2;
    bool same = true;
    for (int i = 0; i < 100 && same; ++i) {
      const std::uint64_t before = looker.seen.load(std::memory_order_relaxed);
      while (looker.seen.load(std::memory_order_relaxed) == before) sched_yield();
      char* const low = StackArena::low_end(slot, arena.stack_bytes());
      low[0] = 1;
      arena.cool(slot);
      same = arena.acquire(refused) == slot && low[0] == 0;
    }
    looker.stop.store(true, std::memory_order_relaxed);
    pthread_join(thread, nullptr);
    return same ? 0 : 1;
  });
  if (end.status == kNoFilter) return;
  STRCMP_EQUAL("", end.output);
  LONGS_EQUAL(0, end.status);
}

TEST(StackPool, an_address_is_told_by_its_slot_and_side_of_the_guard) {
  StackArena& arena = fresh_arena(0);
  FiberControl* const first = acquire(arena);
  FiberControl* const second = acquire(arena);
  char* const low = StackArena::low_end(second, arena.stack_bytes());
  FiberControl* owner = nullptr;
  bool in_guard = false;
  CHECK_TRUE(arena.contains(low, owner, in_guard));
  POINTERS_EQUAL(second, owner);
  CHECK_FALSE(in_guard);
  CHECK_TRUE(arena.contains(low - 1, owner, in_guard));
  POINTERS_EQUAL(second, owner);
  CHECK_TRUE(in_guard);
  CHECK_TRUE(arena.contains(low - StackArena::kGuardBytes - 1, owner, in_guard));
  POINTERS_EQUAL(first, owner);
  CHECK_FALSE(in_guard);
  CHECK_FALSE(arena.contains(second + 1, owner, in_guard));
  CHECK_FALSE(arena.contains(&arena, owner, in_guard));
}

TEST(StackPool, visits_what_is_in_use_and_nothing_cold) {
  StackArena& arena = fresh_arena(0);
  FiberControl* const first = acquire(arena);
  FiberControl* const second = acquire(arena);
  FiberControl* const third = acquire(arena);
  arena.cool(second);
  int visits = 0, wrong = 0;
  arena.for_each([&](FiberControl& each) {
    ++visits;
    wrong += &each != first && &each != third;
  });
  LONGS_EQUAL(2, visits);
  LONGS_EQUAL(0, wrong);
  arena.empty();
  arena.for_each([&](FiberControl&) { ++wrong; });
  LONGS_EQUAL(0, wrong);
  POINTERS_EQUAL(first, acquire(arena));
}

TEST(StackPool, every_stack_has_a_guard_and_keeps_it) {
  StackArena& arena = fresh_arena(0);
  for (std::uint32_t i = 0; i < 20; ++i) CHECK_TRUE(acquire(arena)->guarded);
  LONGS_EQUAL(20, arena.guarded());
  CHECK_TRUE(arena.guard_mode() != GuardMode::group);
  arena.empty();
  for (std::uint32_t i = 0; i < 20; ++i) CHECK_TRUE(acquire(arena)->guarded);
  LONGS_EQUAL(20, arena.guarded());
}

TEST(StackPool, past_its_share_of_mappings_it_guards_groups_and_says_so) {
  StackArena& arena = fresh_arena(0);
  arena.guard_by(GuardMode::protect, 5);
  int guarded = 0;
  for (std::uint32_t i = 0; i < kCapacity; ++i) {
    const bool expected = i < 5 || i % StackArena::kGroup == 0;
    FiberControl* const slot = acquire(arena);
    CHECK_EQUAL(expected, slot->guarded);
    guarded += slot->guarded;
  }
  LONGS_EQUAL(5 + 3, guarded);  // 0..4, 16, 32, 48
  LONGS_EQUAL(guarded, arena.guarded());
  CHECK_TRUE(arena.guard_mode() == GuardMode::group);
}

// As real-time programs do: the kernel makes every later mapping resident at once, and takes no advice on it.
TEST(StackPool, where_all_memory_is_locked_only_touched_stacks_are_resident) {
  constexpr int kRefused = 77;
  const auto end = coir::test::in_child([this] {
    if (mlockall(MCL_FUTURE) != 0) return kRefused;
    StackArena& arena = fresh_arena(0);
    const std::size_t bytes = arena.stack_bytes();
    FiberControl* const first = arena.acquire(error);
    if (first == nullptr) return 1;
    char* const low = StackArena::low_end(first, bytes);
    for (std::size_t i = 1; i < 40; ++i) {
      if (coir::port::resident_bytes(low + i * (bytes + StackArena::kGuardBytes), bytes) != 0) return 2;
    }
    // Without madvise, as the vendor's kernel is, pages are mapped over, which makes locked ones resident. QEMU asks the
    // kernel for this advice alone.
    if (madvise(low, bytes, MADV_DONTNEED) != 0 && errno == ENOSYS) return 0;
    memset(low, 1, bytes);
    arena.cool(first);
    return coir::port::resident_bytes(low, bytes) == 0 ? 0 : 3;
  });
  if (end.status == kRefused) return static_cast<void>(puts("# SKIP this user may not lock memory"));
  LONGS_EQUAL(0, end.status);
}

TEST(StackPool, a_cache_gives_out_the_hottest_and_cools_what_is_too_many) {
  static StackPool arenas;
  StackPool* const pool = &arenas;
  pool->prepare();
  StackCache cache;
  cache.set_limit(2);
  FiberControl* slots[3];
  for (FiberControl*& slot : slots) slot = cache.acquire(*pool, 2, error);
  for (FiberControl* slot : slots) cache.release(*pool, slot);
  LONGS_EQUAL(2, cache.pooled());
  POINTERS_EQUAL(slots[1], cache.acquire(*pool, 2, error));
  POINTERS_EQUAL(slots[0], cache.acquire(*pool, 2, error));
  LONGS_EQUAL(0, cache.pooled());
  POINTERS_EQUAL(slots[2], cache.acquire(*pool, 2, error));
  LONGS_EQUAL(3, pool->arena(2).used());
}

TEST(StackPool, a_halved_cache_keeps_the_hottest_and_at_least_one) {
  static StackPool arenas;
  StackPool* const pool = &arenas;
  pool->prepare();
  StackCache cache;
  cache.set_limit(8);
  FiberControl* slots[5];
  for (FiberControl*& slot : slots) slot = cache.acquire(*pool, 2, error);
  const std::size_t charged = coir::account::stacks.used();
  for (FiberControl* slot : slots) cache.release(*pool, slot);
  cache.halve(*pool);
  LONGS_EQUAL(3, cache.pooled());
  LONGS_EQUAL(charged - 2 * pool->arena(2).stack_bytes(), coir::account::stacks.used());
  cache.halve(*pool);
  cache.halve(*pool);
  cache.halve(*pool);
  LONGS_EQUAL(1, cache.pooled());
  POINTERS_EQUAL(slots[4], cache.acquire(*pool, 2, error));
  LONGS_EQUAL(0, cache.pooled());
}

}  // namespace stack_pool_test
