#include <coir/runtime.h>

#include "tests/explore/explore.h"
#include "tests/support/waiting_calls.h"

// A loop over calls that can wait and never have to cannot keep another fiber from running.

namespace coir::explore {

namespace {

constexpr std::size_t kBudgetStack = 64 * 1024;

// loops makes the call until another fiber has run. On two workers the second is busy until then.
template <class Call>
void loops(unsigned workers, Call call) {
  require(run_until_idle({.workers = workers, .default_stack = kBudgetStack}, [&] {
            test::WaitingCalls calls;
            Atomic<bool> held{workers == 1}, over{false};
            Fiber busy;
            if (workers > 1) {
              busy = spawn({.detached = true}, [&] {
                held.store(true);
                while (!over.load()) let_others_go();
              });
            }
            while (!held.load()) let_others_go();
            bool ran = false;
            Fiber other = spawn({.detached = true}, [&] { ran = true; });
            int made = 0;
            for (; !ran && made <= 2 * kBudget; ++made) call(calls);
            require(ran);
            over.store(true);
            require(other.join().has_value());
            if (busy.started()) require(busy.join().has_value());
          }).has_value());
}

void every_call() {
  for (int way = 0; way < test::WaitingCalls::kWays; ++way) {
    loops(1, [way](test::WaitingCalls& calls) { calls.call(way); });
  }
}

void beside_a_busy_worker() {
  loops(2, [](test::WaitingCalls& calls) { calls.call(0); });
}

constexpr Scenario kBudgetScenarios[] = {
    {"budget_every_call_lets_others_run", every_call, {.preemptions = 0, .interleavings = 3, .samples = 3}},
    {"budget_beside_a_busy_worker", beside_a_busy_worker, {.preemptions = 1, .interleavings = 300, .samples = 100}},
};

}  // namespace

std::span<const Scenario> budget_scenarios() noexcept {
  return kBudgetScenarios;
}

}  // namespace coir::explore
