#pragma once

#include "control.h"
#include "scheduler.h"

namespace coir {

// ClaimedFibers strings fibers together that were claimed while they were parked, so that they are woken after the lock
// is gone under which they were claimed. Such a fiber is in no queue: its link of the queues is free.
class ClaimedFibers {
 public:
  void add(FiberControl* fiber) noexcept {
    if (fiber == nullptr) return;
    fiber->next = first_;
    first_ = fiber;
  }
  void wake() noexcept {
    while (FiberControl* const fiber = take()) fiber->wake();
  }

 private:
  FiberControl* take() noexcept {
    FiberControl* const fiber = first_;
    if (fiber != nullptr) first_ = fiber->next;
    return fiber;
  }

  OutsideClaim outside_;
  FiberControl* first_ = nullptr;
};

}  // namespace coir
