#pragma once

#include <cstdint>
#include <source_location>
#include <span>
#include <type_traits>

namespace coir::explore {

// Scenarios are written with these.
//
//   void two_count() {
//     Atomic<int> count{0};
//     threads([&] { count.fetch_add(1); }, [&] { count.fetch_add(1); });
//     require(count.load() == 2);
//   }
//
// A scenario does the same whenever the same thread has its turn at each step: no time, no random numbers.

// Limits are how far a scenario is explored.
struct Limits {
  int preemptions = 2;            // how often a thread is interrupted that could go on, at most
  int delays = 1;                 // how many stores become visible late, at most, with one preemption fewer
  bool timeouts = false;          // a wait with a deadline may end by it at any time; costs a preemption
  unsigned interleavings = 3000;  // the exhaustive search gives up here
  unsigned samples = 1000;        // random interleavings after that
};

struct Scenario {
  const char* name;
  void (*body)();
  Limits limits{};
};

// require stops the exploration and shows the interleaving if `right` is false.
void require(bool right, std::source_location where = std::source_location::current()) noexcept;

// let_others_go is for a loop that waits for what another thread does.
void let_others_go() noexcept;

// time_passed tells how often in this run everybody was asleep and a deadline had to come.
unsigned time_passed() noexcept;

using Body = void (*)(void* argument);

// start begins another explored thread; join_started waits for all that the caller has started.
int start(Body body, void* argument) noexcept;
void join(int thread) noexcept;

// threads runs each body as a thread of its own, and returns when all have ended.
template <class... Bodies>
void threads(Bodies&&... bodies) {
  const int started[] = {start([](void* body) { (*static_cast<std::remove_reference_t<Bodies>*>(body))(); },
                               const_cast<void*>(static_cast<const void*>(&bodies)))...};
  for (const int thread : started) join(thread);
}

// The scenarios, by file.
std::span<const Scenario> budget_scenarios() noexcept;
std::span<const Scenario> run_queue_scenarios() noexcept;
std::span<const Scenario> waiter_scenarios() noexcept;
std::span<const Scenario> reactor_scenarios() noexcept;
std::span<const Scenario> channel_scenarios() noexcept;
std::span<const Scenario> select_scenarios() noexcept;
std::span<const Scenario> lock_scenarios() noexcept;
std::span<const Scenario> runtime_scenarios() noexcept;

}  // namespace coir::explore
