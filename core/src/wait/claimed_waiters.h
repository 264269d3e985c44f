#pragma once

#include "fiber/control.h"
#include "schedule/scheduler.h"
#include "wait/current_scope.h"

namespace coir {

// ClaimedWaiters strings those together that were claimed while they were parked, so that they are woken after the lock
// is gone under which they were claimed. Such a fiber is in no queue: its link of the queues is free. Made before the
// first claim.
class ClaimedWaiters {
 public:
  void add(FiberControl* fiber) noexcept {
    fiber->next = fibers_;
    fibers_ = fiber;
  }
  void add(ThreadPlace* place) noexcept {
    place->next = threads_;
    threads_ = place;
  }

  void wake() noexcept {
    while (fibers_ != nullptr) {
      FiberControl* const fiber = fibers_;
      fibers_ = fiber->next;
      fiber->wake();
    }
    while (threads_ != nullptr) {
      // A claimed thread stays where it is until it is woken.
      ThreadPlace* const place = threads_;
      threads_ = place->next;
      place->waiting->wake();
    }
  }

 private:
  OutsideClaim outside_;
  FiberControl* fibers_ = nullptr;
  ThreadPlace* threads_ = nullptr;
};

}  // namespace coir
