#include <coir/cancellation.h>

#include "schedule/errand.h"
#include "wait/claimed_waiters.h"
#include "wait/owner.h"
#include "wait/wait_round.h"

namespace coir {

// Invariant: what a watch names is cancelled under the source's lock, which the watch's end takes: a scope that is
// cancelled has not ended. Waiters are woken after unlocking.
void CancellationSource::cancel(const char* reason) noexcept {
  if (by_worker([=, this] { cancel(reason); })) return;
  ClaimedWaiters woken;
  detail::WakeList selects;
  {
    Locked hold(lock_);
    if (cancelled_.load(std::memory_order_relaxed)) return;
    reason_.store(reason, std::memory_order_release);
    cancelled_.store(true, std::memory_order_release);
    // First: a select that has a case for the source is told by it, and not cancelled by a watch.
    selects.add_all(waiters_);
    for (CancellationWatch* watch = watches_.first(); watch != nullptr; watch = watch->next_) {
      watch->cancel_target(reason, woken);
    }
  }
  selects.wake_all();
  woken.wake();
}

CancellationWatch::CancellationWatch(CancellationToken token, CancelScope& scope) noexcept
    : source_(token.source_), scope_(&scope.scope_) {
  enlist();
}

CancellationWatch::CancellationWatch(CancellationToken token, FiberRef task) noexcept
    : source_(token.source_), task_(task) {
  enlist();
}

CancellationWatch::CancellationWatch(CancellationToken token, detail::Scope& waiting) noexcept
    : source_(token.source_), scope_(&waiting), only_waiting_(true) {
  enlist();
}

CancellationWatch::~CancellationWatch() {
  if (source_ == nullptr) return;
  Locked hold(source_->lock_);
  if (listed_) source_->watches_.remove(*this);
}

void CancellationWatch::enlist() noexcept {
  if (source_ == nullptr) return;
  ClaimedWaiters woken;
  {
    Locked hold(source_->lock_);
    if (source_->cancelled_.load(std::memory_order_relaxed)) {
      if (only_waiting_) return;
      cancel_target(source_->reason_.load(std::memory_order_relaxed), woken);
    } else {
      source_->watches_.add(*this);
      listed_ = true;
    }
  }
  woken.wake();
}

void CancellationWatch::cancel_target(const char* reason, ClaimedWaiters& woken) noexcept {
  if (scope_ != nullptr) {
    Locked hold(scope_->lock);
    if (only_waiting_) return static_cast<void>(detail::claim_waiting(*scope_, reason, woken));
    return detail::mark_and_claim(*scope_, reason, woken);
  }
  if (task_.control_ == nullptr) return;
  detail::cancel_claim(task_.control_, task_.id_, reason, woken);
}

}  // namespace coir
