#pragma once

#include <coir/detail/intrusive_list.h>

#include "fiber/control.h"
#include "schedule/scheduler.h"
#include "wait/current_scope.h"

namespace coir {

// ClaimedWaiters lists parked waiters that were claimed under a lock, so that they are woken after unlocking. A claimed
// fiber is in no queue, so its queue link is free for this list. Construct it before the first claim.
class ClaimedWaiters {
 public:
  void add(FiberControl* fiber) noexcept { fibers_.push(*fiber); }
  void add(ThreadPlace* place) noexcept { threads_.push(*place); }

  bool empty() const noexcept { return fibers_.empty() && threads_.empty(); }

  void wake() noexcept {
    while (FiberControl* const fiber = fibers_.pop()) fiber->wake();
    // A claimed thread stays where it is until it is woken.
    while (ThreadPlace* const place = threads_.pop()) place->waiting->wake();
  }

 private:
  OutsideClaim outside_;
  detail::IntrusiveStack<FiberControl> fibers_;
  detail::IntrusiveStack<ThreadPlace> threads_;
};

}  // namespace coir
