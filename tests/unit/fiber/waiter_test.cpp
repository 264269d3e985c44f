#include "core/src/fiber/waiter.h"

#include <CppUTest/TestHarness.h>
#include <pthread.h>

#include <atomic>

#include <coir/deadline.h>

#include "tests/support/scale.h"

namespace waiter_test {

using coir::kManyWorkers;
using coir::Waiter;
using coir::WakeReason;
using coir::test::scaled;

namespace {

struct Sleeper : Waiter {
  explicit Sleeper(std::uint64_t ticket) noexcept : Waiter(&woken, ticket) {}
  static void woken(Waiter& self) noexcept { ++static_cast<Sleeper&>(self).wakes; }
  std::atomic<int> wakes{0};
};

}  // namespace

TEST_GROUP(Waiter) {
  Sleeper sleeper{7};

  void park() {
    sleeper.arm(7);
    CHECK_TRUE(sleeper.commit());
  }
};

TEST(Waiter, one_that_does_not_wait_cannot_be_claimed) {
  CHECK_TRUE(sleeper.claim(WakeReason::ready) == Waiter::Claim::lost);
  park();
  CHECK_TRUE(sleeper.claim(WakeReason::ready) == Waiter::Claim::parked);
  CHECK_TRUE(sleeper.claim(WakeReason::ready) == Waiter::Claim::lost);
}

TEST(Waiter, the_first_claim_wins_and_gives_the_reason) {
  park();
  CHECK_TRUE(sleeper.claim(WakeReason::timed_out) == Waiter::Claim::parked);
  CHECK_TRUE(sleeper.claim(WakeReason::ready) == Waiter::Claim::lost);
  CHECK_TRUE(sleeper.reason() == WakeReason::timed_out);
}

TEST(Waiter, claimed_before_it_is_parked_it_goes_on_by_itself) {
  if (!kManyWorkers) return;
  sleeper.arm(7);
  CHECK_TRUE(sleeper.claim_and_wake(WakeReason::cancelled));
  LONGS_EQUAL(0, sleeper.wakes);
  CHECK_FALSE(sleeper.commit());
  CHECK_TRUE(sleeper.reason() == WakeReason::cancelled);
}

TEST(Waiter, claimed_while_parked_it_is_woken_once) {
  park();
  CHECK_TRUE(sleeper.claim_and_wake(WakeReason::joined));
  CHECK_FALSE(sleeper.claim_and_wake(WakeReason::joined));
  LONGS_EQUAL(1, sleeper.wakes);
}

TEST(Waiter, a_ticket_reaches_its_own_wait_only) {
  park();
  CHECK_TRUE(sleeper.claim_ticket(WakeReason::cancelled, 8) == Waiter::Claim::lost);
  CHECK_TRUE(sleeper.claim_ticket(WakeReason::cancelled, 7) == Waiter::Claim::parked);
  sleeper.reset(&Sleeper::woken, 9);
  sleeper.arm(9);
  CHECK_TRUE(sleeper.claim_ticket(WakeReason::cancelled, 7) == Waiter::Claim::lost);
}

TEST(Waiter, every_wait_starts_without_a_reason) {
  park();
  sleeper.claim(WakeReason::closed);
  park();
  CHECK_TRUE(sleeper.claim(WakeReason::ready) == Waiter::Claim::parked);
  CHECK_TRUE(sleeper.reason() == WakeReason::ready);
}

namespace {

constexpr int kRivals = 3;

struct Race {
  Sleeper sleeper{1};
  std::atomic<int> round{0};
  std::atomic<int> armed_wins{0}, parked_wins{0}, done{0};
  std::atomic<bool> over{false};

  static void* rival(void* self) {
    auto& race = *static_cast<Race*>(self);
    for (int round = 1;; ++round) {
      while (race.round.load(std::memory_order_acquire) < round) {
        if (race.over.load(std::memory_order_acquire)) return nullptr;
        sched_yield();
      }
      const Waiter::Claim won = race.sleeper.claim(WakeReason::ready);
      if (won == Waiter::Claim::armed) ++race.armed_wins;
      if (won == Waiter::Claim::parked) {
        ++race.parked_wins;
        race.sleeper.wake();
      }
      ++race.done;
    }
  }
};

}  // namespace

// Either the commit fails or somebody wakes: never both, never neither, and exactly one claim wins.
TEST(Waiter, one_of_many_sources_wins_and_no_wakeup_is_lost) {
  if (!kManyWorkers) return;
  Race race;
  pthread_t threads[kRivals];
  for (pthread_t& thread : threads) pthread_create(&thread, nullptr, Race::rival, &race);
  int wrong = 0;
  // Each round waits until all four threads have run; beside busy ones that takes milliseconds.
  const auto enough = coir::Deadline::after(std::chrono::seconds(30));
  for (int round = 1; round <= scaled({30'000, 10'000, 5'000, 3'000}) && !enough.passed(); ++round) {
    race.armed_wins = race.parked_wins = race.done = 0;
    race.sleeper.wakes = 0;
    race.sleeper.arm(1);
    race.round.store(round, std::memory_order_release);
    const bool parked = race.sleeper.commit();
    while (race.done.load(std::memory_order_acquire) != kRivals) sched_yield();
    const bool right = race.armed_wins + race.parked_wins == 1 && race.sleeper.wakes == (parked ? 1 : 0) &&
                       race.parked_wins == (parked ? 1 : 0);
    wrong += !right;
  }
  race.over = true;
  for (pthread_t thread : threads) pthread_join(thread, nullptr);
  LONGS_EQUAL(0, wrong);
}

}  // namespace waiter_test
