#pragma once

#include <cstddef>
#include <cstdint>

#include "explore.h"
#include "tests/support/random.h"

namespace coir::explore {

using test::Random;

// Chooser decides wherever a run has more than one way to continue: exhaustively, at random, or by a recorded list.
//
// Exhaustively it walks the tree of all decisions depth-first, and leaves out what would take more preemptions or
// delays than it is allowed (Musuvathi and Qadeer, "Iterative Context Bounding", 2007). By chance it alternates between
// PCT (Burckhardt and others, "A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs", 2010), where the
// thread of the highest priority runs and a few random steps lower one, and a walk that now and then interrupts.
class Chooser {
 public:
  static constexpr std::size_t kMostDecisions = 1 << 15;
  static constexpr int kMostThreads = 8;

  void be_exhaustive(int preemptions, int delays, bool timeouts) noexcept;
  void be_random(std::uint64_t seed, bool delays, bool timeouts) noexcept;
  // replay takes what print_decisions wrote; false when it is not that.
  bool replay(const char* decisions) noexcept;

  // begin starts a run; next_run, after it, tells whether there is another interleaving to try. With chance there
  // always is.
  void begin() noexcept;
  bool next_run() noexcept;

  // trouble is what keeps the search from going on, or null.
  const char* trouble() const noexcept { return trouble_; }

  bool timeouts() const noexcept { return timeouts_; }
  bool delays() const noexcept { return delays_ != 0; }

  // step counts; PCT changes priorities at random steps.
  void step(int thread) noexcept;

  // gives_way tells that the thread waits for others in a loop, which PCT would otherwise let run for ever.
  void gives_way(int thread) noexcept { priority_[thread] = --lowest_; }

  // thread picks one of `candidates`; the first `free` of them cost nothing, each other one a preemption. The first is
  // the running thread, if that is possible.
  std::size_t thread(const std::uint8_t* candidates, std::size_t count, std::size_t free) noexcept;

  // delay tells whether a store becomes visible late; trickle, whether a late one becomes visible now.
  // delayed_in_vain tells that a late store became visible before anybody else had a turn: the run is like the one
  // without that delay, and nothing further is tried from here.
  bool delay() noexcept;
  void delayed_in_vain() noexcept { barren_ = mode_ == Mode::exhaustive; }
  bool trickle() noexcept;

  void print_decisions() const noexcept;

 private:
  enum class Mode : std::uint8_t { exhaustive, random, replayed };
  struct Decision {
    std::uint8_t count, free, taken;
    bool of_delay;
    std::uint8_t preemptions, delays;  // spent before
  };

  std::size_t decide(std::size_t count, std::size_t free, bool of_delay) noexcept;
  std::size_t by_chance(const std::uint8_t* candidates, std::size_t count, std::size_t free) noexcept;

  Mode mode_ = Mode::exhaustive;
  const char* trouble_ = nullptr;
  bool timeouts_ = false, trickles_ = false, barren_ = false;
  int preemptions_ = 0, delays_ = 0;
  std::size_t at_ = 0, known_ = 0;
  Decision decisions_[kMostDecisions];

  Random random_{1};
  unsigned sample_ = 0;
  std::uint32_t steps_ = 0, last_steps_ = 100;
  int priority_[kMostThreads];
  int lowest_ = 0;
  static constexpr int kChanges = 3;
  std::uint32_t change_at_[kChanges];
};

}  // namespace coir::explore
