#include <coir/budget.h>

#include <CppUTest/TestHarness.h>
#include <coir/blocking.h>
#include <coir/descriptor_stream.h>
#include <coir/ledger.h>
#include <coir/pressure.h>
#include <coir/runtime.h>
#include <coir/signal.h>
#include <coir/worker_stack.h>
#include <signal.h>
#include <unistd.h>

#include "tests/support/everywhere.h"
#include "tests/support/thread.h"
#include "tests/support/waiting_calls.h"

namespace budget_test {

using coir::Deadline;
using coir::kBudget;
using coir::spawn;
using coir::test::WaitingCalls;
using namespace std::chrono_literals;

namespace {

// calls_until_another_runs is how often `call` is made, in a row, before another fiber of the worker has its turn.
template <class Call>
int calls_until_another_runs(Call call) {
  bool ran = false;
  coir::Fiber other = spawn({.detached = true}, [&] { ran = true; });
  int calls = 0;
  for (; !ran && calls < 100 * kBudget; ++calls) call();
  static_cast<void>(other.join());
  return calls;
}

}  // namespace

TEST_GROUP_BASE(Budget, coir::test::Expecting) {
  template <class Body>
  void run(Body body) {
    CHECK_TRUE(coir::run_until_idle({.workers = 1, .default_stack = 16'384}, body).has_value());
    check();
  }
};

TEST(Budget, no_loop_over_a_waiting_call_keeps_another_fiber_from_running) {
  for (int way = 0; way < WaitingCalls::kWays; ++way) {
    run([&] {
      WaitingCalls calls;
      coir::yield();  // its sleeper sleeps
      expect(calls_until_another_runs([&] { calls.call(way); }) <= 2 * kBudget);
    });
  }
}

TEST(Budget, reads_and_calls_that_block_are_dearer) {
  run([&] {
    auto zeros = coir::DescriptorStream::open("/dev/zero");
    expect(zeros.has_value());
    char room[16];
    if (zeros) expect(calls_until_another_runs([&] { expect(zeros->read(room).has_value()); }) <= 2 * kBudget);
    expect(coir::catch_signals({SIGUSR2}).has_value());
    const auto none = [] { static_cast<void>(coir::wait_signal({SIGUSR2}, Deadline::now())); };
    expect(calls_until_another_runs(none) <= 2 * kBudget);
    coir::CancelScope scope;
    scope.cancel();
    const auto refused = [] { static_cast<void>(coir::blocking([] {})); };
    expect(calls_until_another_runs(refused) <= 2 * kBudget);
  });
}

// A sleeper is another fiber, too, that only the timers make runnable.
TEST(Budget, timers_are_looked_at_as_well) {
  run([&] {
    bool woken = false;
    coir::Fiber sleeper = spawn([&] { woken = coir::sleep(1ms).has_value(); });
    coir::Event set;
    set.set();
    while (!woken) expect(set.wait().has_value());
    expect(sleeper.join().has_value());
  });
}

TEST(Budget, a_fiber_that_parks_now_and_then_is_not_interrupted) {
  run([&] {
    coir::Event set;
    set.set();
    int turns = 0;
    bool over = false;
    coir::Fiber other = spawn([&] {
      while (!over) {
        ++turns;
        coir::yield();
      }
    });
    constexpr int kRounds = 1'000;
    for (int round = 0; round < kRounds; ++round) {
      for (int call = 0; call < kBudget / 2; ++call) expect(set.wait().has_value());
      coir::yield();
    }
    over = true;
    expect(other.join().has_value());
    expect(turns <= kRounds + 2);
  });
}

TEST(Budget, on_a_worker_s_own_stack_nothing_yields_and_the_fiber_does_afterwards) {
  run([&] {
    bool ran = false;
    coir::Fiber other = spawn({.detached = true}, [&] { ran = true; });
    coir::Event set;
    set.set();
    coir::on_worker_stack([&] {
      for (int i = 0; i < 10 * kBudget; ++i) expect(set.wait().has_value());
    });
    expect(!ran);
    for (int i = 0; i < 2 * kBudget && !ran; ++i) expect(set.wait().has_value());
    expect(ran);
    expect(other.join().has_value());
  });
}

namespace {

// Shedder is a relief that sends farewells: calls that spend.
struct Shedder {
  coir::Account& account;

  static std::size_t give(void* context, std::size_t) noexcept {
    for (int i = 0; i < 10 * kBudget; ++i) coir::spend_budget();
    auto& self = *static_cast<Shedder*>(context);
    const std::size_t given = self.account.used();
    self.account.refund(given);
    return given;
  }
};

constinit coir::Account g_kept("kept"), g_wanted("wanted");

}  // namespace

TEST(Budget, a_relief_does_not_yield_and_its_caller_does_afterwards) {
  run([&] {
    Shedder shedder{g_kept};
    coir::Relief relief(coir::Pressure::caches, Shedder::give, &shedder);
    coir::Pressure::add(relief);
    expect(g_kept.charge(200));
    g_wanted.set_ceiling(0);
    bool ran = false;
    coir::Fiber other = spawn({.detached = true}, [&] { ran = true; });
    expect(!coir::Pressure::charge(g_wanted, 100));
    expect(g_kept.used() == 0 && !ran);
    for (int i = 0; i < 2 * kBudget && !ran; ++i) coir::spend_budget();
    expect(ran);
    expect(other.join().has_value());
    coir::Pressure::remove(relief);
    g_wanted.set_ceiling(SIZE_MAX);
  });
}

TEST(Budget, a_plain_thread_has_none) {
  for (int i = 0; i < 10 * kBudget; ++i) coir::spend_budget();
  const coir::test::Thread thread([] {
    for (int i = 0; i < 10 * kBudget; ++i) coir::spend_budget(coir::kSystemCallCost);
  });
}

}  // namespace budget_test
