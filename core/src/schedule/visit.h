#pragma once

#include <cstdint>

#include <coir/atomic.h>

namespace coir {

class Scheduler;

// The door of the process's run. A run's scheduler, workers and reactor are unmapped at its end, and a plain thread may
// call at that moment.
//
// The rule: a public call touches the run on one of its workers, or inside a Visit. The run ends only when nobody
// visits. Once its end is decided, a newcomer is told that there is no run, and does not delay the end.
//
//   open     from the scheduler's start ...
//   closed   ... until is_quiescent has found the last fiber ended, or finish begins: whichever is first
//
// One word holds whether the door is closed, how many visit, how many visitors bring a fiber, and how many ever did.
// Closing is one compare-and-swap, which fails if a fiber was brought since the caller looked.
namespace door {

void open() noexcept;

// seen is what close_unless_brought compares with: taken before looking whether any fiber is left.
std::uint64_t seen() noexcept;
// close_unless_brought closes the door, unless a visitor has brought a fiber since `seen` or is about to. It then
// returns false and changes nothing; the visitor notifies the workers, even if its push fails.
bool close_unless_brought(std::uint64_t seen) noexcept;

// close refuses all newcomers from now on. False: a visitor is still inside; ask again.
bool close() noexcept;

// enter begins a visit; false when the door is closed. Any context, a signal handler too.
bool enter() noexcept;
// enter_with_fiber is enter for a visitor that brings a fiber. The run goes on until the visitor calls `brought`: the
// fiber stands in a queue, or will not come. The visitor then notifies the workers before its visit ends, for one of
// them may have been about to end the run and sleep since.
bool enter_with_fiber() noexcept;
void brought() noexcept;
// enter_again begins a visit while something else keeps the run: one of its live fibers, the caller included. A waker
// may call it on behalf of the thread that it is about to wake.
void enter_again() noexcept;
void leave() noexcept;

}  // namespace door

// Visit keeps the run that a call concerns in place: on a worker its own run, which needs no keeping; on the thread of
// an isolated run that one; on any other thread the process's. False: there is no run.
class Visit {
 public:
  Visit() noexcept;
  ~Visit() {
    if (visits_) door::leave();
  }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

  explicit operator bool() const noexcept { return scheduler_ != nullptr; }
  Scheduler* operator->() const noexcept { return scheduler_; }
  Scheduler& operator*() const noexcept { return *scheduler_; }

 private:
  Scheduler* scheduler_;
  bool visits_;
};

}  // namespace coir
