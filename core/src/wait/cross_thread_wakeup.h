#pragma once

#include <coir/atomic.h>

#include "schedule/errand.h"
#include "wait/park.h"

namespace coir {

// CrossThreadWakeup tells a run that plain threads may still wake its fibers. In single-worker builds it also carries
// the wakeup: no other thread may touch a fiber there, so the thread lists the fiber and rings, and `answer` wakes the
// listed fibers on the worker's own stack. It needs no descriptor and cannot fail.
//
//   enter(self)   the fiber, before a thread can see it
//   ring()        the thread, after it has listed the fiber, under the lock that the fiber takes to leave; single-worker
//                 builds
//   leave(self)   the fiber, after its wait, whatever ended it
class CrossThreadWakeup {
 public:
  using Answer = void (*)() noexcept;
  explicit constexpr CrossThreadWakeup(Answer answer) noexcept : answer_(answer), errand_{&call, this} {}

  void enter(FiberControl* self) noexcept {
    Scheduler& scheduler = self->worker->scheduler();
    scheduler.outside_waits.fetch_add(1, std::memory_order_relaxed);
    if constexpr (!kManyWorkers) scheduler_.store(&scheduler, std::memory_order_relaxed);
  }

  // The run cannot end meanwhile: the listed fiber waits for the lock.
  void ring() noexcept {
    // acq_rel pairs with the exchange in call, whose answer finds each fiber that was listed before it.
    if (!brought_.exchange(true, std::memory_order_acq_rel)) scheduler_.load(std::memory_order_relaxed)->bring(errand_);
  }

  void leave(FiberControl* self) noexcept {
    self->worker->scheduler().outside_waits.fetch_sub(1, std::memory_order_relaxed);
  }

 private:
  // call is the errand's. For a fiber that is listed from now on the errand is brought again.
  static void call(void* wakeup) noexcept {
    auto& self = *static_cast<CrossThreadWakeup*>(wakeup);
    self.brought_.exchange(false, std::memory_order_acq_rel);
    self.answer_();
  }

  Answer answer_;
  Errand errand_;  // nobody waits for its end
  SharedAtomic<bool> brought_{false};
  SharedAtomic<Scheduler*> scheduler_{nullptr};  // of the only run of a single-worker build
};

}  // namespace coir
