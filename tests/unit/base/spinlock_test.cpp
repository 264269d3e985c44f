#include <coir/spinlock.h>

#include <CppUTest/TestHarness.h>
#include <coir/port/futex.h>
#include <pthread.h>
#include <sched.h>

#include <atomic>

#include "tests/support/child.h"

namespace spinlock_test {

namespace {

std::atomic<int> g_yields{0};

}  // namespace

// The linker leads here: how often somebody gave its CPU away.
extern "C" int __real_sched_yield();
extern "C" int __wrap_sched_yield() {
  g_yields.fetch_add(1);
  return __real_sched_yield();
}

TEST_GROUP(Spinlock) {};

// A thread that spins may have taken the CPU of the one that holds the lock.
TEST(Spinlock, a_thread_that_does_not_get_it_yields_to_the_kernel) {
  if (!coir::kManyWorkers) return;
  const auto end = coir::test::in_child([] {
    static coir::Spinlock lock;
    pthread_t thread;
    lock.lock();
    const auto take = [](void*) -> void* {
      const coir::Locked hold(lock);
      return nullptr;
    };
    if (pthread_create(&thread, nullptr, take, nullptr) != 0) return 2;
    while (g_yields.load() == 0) coir::Spinlock::relax();
    lock.unlock();
    pthread_join(thread, nullptr);
    return 0;
  });
  LONGS_EQUAL(0, end.signal);
  LONGS_EQUAL(0, end.status);
}

// In debug and sanitizer builds.
TEST(Spinlock, a_system_call_under_it_ends_the_process_with_one_line) {
  if (!COIR_SPIN_CHECKS) return;
  const auto end = coir::test::in_child([] {
    static coir::Spinlock lock;
    coir::SharedAtomic<std::uint32_t> word{0};
    {
      const coir::Locked hold(lock);
    }
    coir::port::futex_wake(word);  // not held any more
    const coir::Locked hold(lock);
    coir::port::futex_wake(word);
    return 0;
  });
  LONGS_EQUAL(1, end.lines());
  CHECK_TRUE(end.wrote("coir: futex under a spinlock"));
  CHECK_TRUE(end.status != 0);
}

}  // namespace spinlock_test
