#include "core/src/schedule/timer_wheel.h"

#include "core/src/fiber/control.h"

#include <CppUTest/TestHarness.h>
#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <initializer_list>
#include <new>

#include "tests/support/child.h"
#include "tests/support/scale.h"

namespace timer_wheel_test {

using coir::Timer;
using coir::TimerWheel;
using coir::test::scaled;

namespace {

constexpr std::int64_t kTick = TimerWheel::kTickNs;

struct Recorder : Timer {
  Recorder() noexcept : Timer(&fired) {}
  static coir::FiberControl* fired(Timer& timer) noexcept {
    ++static_cast<Recorder&>(timer).count;
    return nullptr;
  }

  int count = 0;
  std::int64_t due = -1;   // -1: the reference holds it for not armed
  std::int64_t since = 0;  // the wheel's time at its start
};

// Random is xorshift64*; its seed is printed when a property fails.
struct Random {
  std::uint64_t state;
  std::uint64_t operator()() noexcept {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 0x2545f4914f6cdd1du;
  }
  std::uint64_t below(std::uint64_t limit) noexcept { return (*this)() % limit; }
  // spread is a number whose order of magnitude is random too.
  std::int64_t spread(unsigned bits) noexcept { return static_cast<std::int64_t>((*this)() >> (63 - below(bits))); }
};

}  // namespace

TEST_GROUP(TimerWheel) {
  TimerWheel* wheel = new TimerWheel;
  void teardown() override { delete wheel; }
};

TEST(TimerWheel, fires_at_its_tick_and_not_one_before) {
  for (const std::int64_t ticks : {1, 2, 63, 64, 65, 127, 128, 4095, 4096, 4097, 262143, 262144, 16777216}) {
    const std::int64_t start = 1'000 * kTick;
    TimerWheel fresh;
    fresh.advance(start);
    Recorder timer;
    fresh.start(timer, start + ticks * kTick);
    fresh.advance(start + ticks * kTick - 1);
    LONGS_EQUAL(0, timer.count);
    LONGS_EQUAL(1, fresh.armed());
    LONGS_EQUAL(1, fresh.advance(start + ticks * kTick));
    LONGS_EQUAL(1, timer.count);
    LONGS_EQUAL(0, fresh.armed());
  }
}

TEST(TimerWheel, a_fraction_of_a_tick_is_waited_out) {
  Recorder timer;
  wheel->start(timer, 5 * kTick + 1);
  wheel->advance(5 * kTick + kTick - 1);
  LONGS_EQUAL(0, timer.count);
  wheel->advance(6 * kTick);
  LONGS_EQUAL(1, timer.count);
}

TEST(TimerWheel, a_timer_that_is_due_already_fires_at_the_next_tick) {
  wheel->advance(100 * kTick);
  Recorder past, negative;
  wheel->start(past, 3 * kTick);
  wheel->start(negative, -7);
  wheel->advance(102 * kTick);
  LONGS_EQUAL(1, past.count);
  LONGS_EQUAL(1, negative.count);
}

TEST(TimerWheel, a_stopped_timer_never_fires_and_stopping_again_does_nothing) {
  Recorder timer;
  wheel->start(timer, 10 * kTick);
  wheel->stop(timer);
  wheel->stop(timer);
  LONGS_EQUAL(0, wheel->armed());
  CHECK_TRUE(wheel->next_due_ns() == INT64_MAX);
  wheel->advance(1'000'000 * kTick);
  LONGS_EQUAL(0, timer.count);
}

TEST(TimerWheel, a_fired_timer_may_be_started_again) {
  Recorder timer;
  for (std::int64_t round = 1; round <= 300; ++round) {
    wheel->start(timer, round * 37 * kTick);
    wheel->advance(round * 37 * kTick);
    LONGS_EQUAL(round, timer.count);
  }
}

TEST(TimerWheel, the_farthest_deadlines_neither_fire_nor_overflow) {
  Recorder farthest, century;
  wheel->start(farthest, INT64_MAX - 1);
  wheel->start(century, std::int64_t{100} * 365 * 24 * 3600 * 1'000'000'000);
  for (std::int64_t now = kTick; now < std::int64_t{1} << 60; now *= 7) wheel->advance(now);
  LONGS_EQUAL(0, farthest.count + century.count);
  wheel->advance(std::int64_t{100} * 365 * 24 * 3600 * 1'000'000'000);
  LONGS_EQUAL(1, century.count);
  LONGS_EQUAL(0, farthest.count);
  LONGS_EQUAL(1, wheel->armed());
}

// Any mix of start, stop and advance fires what a plain table of deadlines would: nothing early, all that is due, each
// once.
TEST(TimerWheel, agrees_with_a_table_of_deadlines) {
  constexpr int kTimers = 200, kSeeds = scaled({200, 60, 60, 40}), kSteps = 1'500;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    Random random{seed * 0x9e3779b97f4a7c15u};
    auto* const fresh = new TimerWheel;
    auto* const timers = new Recorder[kTimers];
    std::int64_t now = random.spread(50);
    fresh->advance(now);
    std::uint32_t armed = 0;
    const char* wrong = nullptr;
    for (int step = 0; step < kSteps && wrong == nullptr; ++step) {
      Recorder& timer = timers[random.below(kTimers)];
      const std::uint64_t what = random.below(8);
      if (what < 4) {
        if (timer.due < 0) ++armed;
        fresh->stop(timer);
        const bool past = random.below(16) == 0;
        timer.due = past ? now - static_cast<std::int64_t>(random.below(1'000) * kTick) : now + random.spread(58);
        if (timer.due < 0) timer.due = 0;
        timer.since = now;
        fresh->start(timer, timer.due);
      } else if (what < 6) {
        if (timer.due >= 0) --armed;
        timer.due = -1;
        fresh->stop(timer);
      } else {
        now += random.spread(random.below(4) == 0 ? 48 : 30);
        for (int i = 0; i < kTimers; ++i) timers[i].count = 0;
        const std::uint32_t told = fresh->advance(now);
        std::uint32_t fired = 0;
        for (int i = 0; i < kTimers; ++i) {
          Recorder& each = timers[i];
          fired += static_cast<std::uint32_t>(each.count);
          if (each.count > 1) wrong = "fired twice";
          if (each.count == 1 && each.due < 0) wrong = "fired though stopped";
          if (each.count == 1 && each.due > now) wrong = "fired early";
          // A timer that was due at its start waits for the tick after.
          const std::int64_t latest = (each.due > each.since ? each.due : each.since + kTick) + kTick - 1;
          if (each.count == 0 && each.due >= 0 && latest / kTick <= now / kTick) wrong = "did not fire";
          if (each.count == 1) {
            each.due = -1;
            --armed;
          }
        }
        if (fired != told) wrong = "advance tells another number";
      }
      if (fresh->armed() != armed) wrong = "armed() is wrong";
      const std::int64_t next = fresh->next_due_ns();
      for (int i = 0; i < kTimers; ++i) {
        if (timers[i].due > now && next > timers[i].due + kTick - 1) wrong = "next_due_ns is late";
      }
      if (armed == 0 && next != INT64_MAX) wrong = "something is due though nothing is armed";
    }
    delete[] timers;
    delete fresh;
    if (wrong != nullptr) FAIL(StringFromFormat("seed %d: %s", static_cast<int>(seed), wrong).asCharString());
  }
}

TEST(TimerWheel, a_hundred_thousand_timers_all_fire) {
  constexpr int kTimers = 100'000;
  auto* const timers = new Recorder[kTimers];
  Random random{7};
  for (int i = 0; i < kTimers; ++i) {
    timers[i].due = static_cast<std::int64_t>(random.below(3'600'000)) * kTick;
    wheel->start(timers[i], timers[i].due);
  }
  LONGS_EQUAL(kTimers, wheel->armed());
  for (int i = 0; i < kTimers; i += 2) wheel->stop(timers[i]);
  std::uint32_t fired = 0;
  int early = 0;
  for (std::int64_t now = 0; now <= 3'600'000 * kTick; now += 10'000 * kTick) {
    fired += wheel->advance(now);
    for (int i = 1; i < kTimers; i += 501 * 2) early += timers[i].count == 1 && timers[i].due > now;
  }
  int wrong = 0;
  for (int i = 0; i < kTimers; ++i) wrong += timers[i].count != i % 2;
  delete[] timers;
  LONGS_EQUAL(kTimers / 2, fired);
  LONGS_EQUAL(0, early);
  LONGS_EQUAL(0, wrong);
}

namespace {

struct Contest {
  TimerWheel wheel;
  std::atomic<std::int64_t> now{0};
  std::atomic<bool> over{false};

  static void* advance(void* self) {
    auto& contest = *static_cast<Contest*>(self);
    while (!contest.over.load(std::memory_order_relaxed))
      contest.wheel.advance(contest.now.fetch_add(kTick / 4) + kTick / 4);
    return nullptr;
  }
};

}  // namespace

// Another thread advances meanwhile. The timer lives in a frame that is gone afterwards, as a parked fiber's does.
TEST(TimerWheel, after_stop_has_returned_a_timer_is_the_owners_alone) {
  if (!coir::kManyWorkers) return;
  auto* const contest = new Contest;
  pthread_t thread;
  pthread_create(&thread, nullptr, Contest::advance, contest);
  int changed = 0, late = 0;
  for (int i = 0; i < scaled({300'000, 100'000, 30'000, 20'000}); ++i) {
    alignas(Recorder) char frame[sizeof(Recorder)];
    auto* const timer = new (frame) Recorder;
    contest->wheel.start(*timer, contest->now.load() + (i % 7) * kTick);
    if (i % 64 == 0) {
      while (contest->wheel.armed() != 0) sched_yield();
    } else {
      for (int spin = 0; spin < i % 64; ++spin) asm volatile("");
    }
    contest->wheel.stop(*timer);
    const int count = timer->count;
    late += i % 64 == 0 && count != 1;
    timer->count = 5;
    for (int spin = 0; spin < 16; ++spin) asm volatile("" ::: "memory");
    changed += timer->count != 5;
  }
  contest->over = true;
  pthread_join(thread, nullptr);
  const std::uint32_t armed = contest->wheel.armed();
  delete contest;
  LONGS_EQUAL(0, changed);
  LONGS_EQUAL(0, armed);
  LONGS_EQUAL(0, late);
}

namespace {

// Sleeper is a parked fiber that a timer wakes.
struct Sleeper : Timer {
  Sleeper() noexcept : Timer(&fired) {}
  coir::FiberControl* fiber() noexcept { return reinterpret_cast<coir::FiberControl*>(control); }
  static coir::FiberControl* fired(Timer& timer) noexcept {
    coir::FiberControl* const fiber = static_cast<Sleeper&>(timer).fiber();
    return fiber->claim(coir::WakeReason::timed_out) == coir::Waiter::Claim::parked ? fiber : nullptr;
  }

  alignas(coir::FiberControl) char control[sizeof(coir::FiberControl)] = {};
};

TimerWheel* g_wheel = nullptr;
Sleeper* g_sleepers = nullptr;
int g_woken = 0;

// stop_both does what a fiber does that runs at once on another worker, and with it one that is still asleep.
void stop_both(coir::Waiter&) noexcept {
  ++g_woken;
  for (int i = 0; i < 2; ++i) g_wheel->stop(g_sleepers[i]);
}

}  // namespace

TEST(TimerWheel, fibers_are_woken_without_the_lock) {
  const auto end = coir::test::in_child([] {
    TimerWheel wheel;
    Sleeper sleepers[2];
    g_wheel = &wheel;
    g_sleepers = sleepers;
    for (Sleeper& sleeper : sleepers) {
      sleeper.fiber()->reset(&stop_both, 1);
      sleeper.fiber()->arm(1);
      static_cast<void>(sleeper.fiber()->commit());
      wheel.start(sleeper, 5 * kTick);
    }
    const std::uint32_t fired = wheel.advance(5 * kTick);
    return fired == 2 && g_woken == 2 && wheel.armed() == 0 ? 0 : 1;
  });
  LONGS_EQUAL(0, end.signal);
  LONGS_EQUAL(0, end.status);
}

}  // namespace timer_wheel_test
