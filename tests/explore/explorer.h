#pragma once

#include "chooser.h"
#include "explore.h"
#include "report.h"

namespace coir::explore {

// Mutant is a way in which every atomic operation is made weaker than it is written, to see that scenarios notice.
enum class Mutant : std::uint8_t {
  none,
  no_fence,         // full fences do nothing
  weak_stores,      // sequentially consistent stores only release
  relaxed_release,  // releasing stores are relaxed ones
  lost_wake,        // every second waking of a sleeper is lost
};

// set_up makes the explored threads, once.
void set_up() noexcept;
void set_mutant(Mutant mutant) noexcept;

// explore_run runs the body once as thread 0, as `chooser` decides. A failure shows the interleaving and ends the
// process.
void explore_run(const Scenario& scenario, Chooser& chooser) noexcept;

// steps_taken and longest_run are of all runs so far.
std::uint64_t steps_taken() noexcept;

}  // namespace coir::explore
