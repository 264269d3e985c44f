#pragma once

#include <cstdint>

#include <coir/atomic.h>

namespace coir {

class Scheduler;

// The door of the process's run. A run's scheduler, workers and reactor are unmapped at its end; a thread that is none
// of its workers may call at that moment.
//
// The rule: a public call that touches the run does so on a worker of it, or inside a Visit. The run ends only when
// nobody visits; once its end is decided, who comes is told that there is no run, and does not hold it up.
//
//   open     from the scheduler's start ...
//   closed   ... until is_quiescent has found the last fiber ended, or finish begins: whichever is first
//
// One word holds whether it is closed, how many visit, how many of those bring a fiber, and how many ever did: to close
// is one compare-and-swap, which fails if a fiber was brought since the caller looked.
namespace door {

void open() noexcept;

// seen is what close_unless_brought compares with: taken before looking whether any fiber is left.
std::uint64_t seen() noexcept;
// close_unless_brought is false, and the door is as it was, when somebody has brought a fiber since `seen`, or is about
// to: the push is told to the workers, and so is a push that comes to nothing.
bool close_unless_brought(std::uint64_t seen) noexcept;

// close keeps newcomers out for good, and returns when the last visitor has left.
void close() noexcept;

// enter is false, and there is no visit, when the door is closed. Any context, a signal handler too.
bool enter() noexcept;
// enter_with_fiber is enter for who brings one: the run goes on until `brought`, which says that it stands in a queue,
// or will not come. The workers are told after that, before the visit ends: one of them may have been about to end the
// run, and sleep since.
bool enter_with_fiber() noexcept;
void brought() noexcept;
// enter_again begins a visit while something else keeps the run: a fiber of it that lives, the caller's own included.
// It may be on behalf of a thread that is about to be woken, by who wakes it.
void enter_again() noexcept;
void leave() noexcept;

}  // namespace door

// Visit is a stay in the run that the caller's call concerns: on a worker its own, which is there anyhow; on the thread
// of an isolated run that one; on any other thread the process's, kept in place meanwhile. False: there is none.
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
