#include <coir/mutex.h>

#include <coir/budget.h>
#include <coir/detail/fatal.h>

#include "wait/wait_round.h"

// How a mutex is passed on.
//
// word_ names the owner; kContended says that somebody waits, in waiters_ or on the way back from there. Without that
// mark it changes by exchange; with it, only under lock_, so that nobody who gives it up touches it after its next
// owner could have destroyed it.
//
// Unlocking a contended mutex leaves it free and calls the first in line to try again: the lock may go to whoever runs
// meanwhile, which spares a switch for each section. called_ is set from that call until the called one has tried.
// Invariant: while the mutex is free and marked, called_ is set, so that somebody will take it or stand in line again
// behind an owner, who calls it again. One who was called in vain stands first in line.
//
// passed_ counts who came later and was served first since one of those in line was served. From kMostPassed on, who
// comes stands in line though the mutex is free, so that nobody waits for ever.

namespace coir {

namespace {

// word_of is how the caller signs for a mutex.
std::uintptr_t word_of(FiberControl* fiber, std::uintptr_t thread) noexcept {
  return fiber != nullptr ? reinterpret_cast<std::uintptr_t>(fiber) : thread;
}

}  // namespace

std::expected<void, Error> Mutex::raw_lock(Deadline deadline) noexcept {
  return raw_lock(deadline, Shielded::no);
}

std::expected<void, Error> Mutex::raw_lock_shielded() noexcept {
  return raw_lock(Deadline::never(), Shielded::yes);
}

inline std::expected<void, Error> Mutex::raw_lock(Deadline deadline, Shielded shielded) noexcept {
  spend_budget();
  FiberControl* const fiber = running_fiber();
  const Word self = word_of(fiber, kThread);
  Word seen = kFree;
  // acquire pairs with the release in raw_unlock.
  if (!word_.compare_exchange_strong(seen, self, std::memory_order_acquire, std::memory_order_relaxed)) [[unlikely]] {
    if (auto locked = lock_contended(self, deadline, shielded); !locked) return locked;
  }
  if (fiber != nullptr) ++fiber->mutexes_held;
  return {};
}

bool Mutex::raw_try_lock() noexcept {
  FiberControl* const fiber = running_fiber();
  const Word self = word_of(fiber, kThread);
  Word seen = kFree;
  if (!word_.compare_exchange_strong(seen, self, std::memory_order_acquire, std::memory_order_relaxed)) {
    if (seen != kContended) return false;
    Locked hold(lock_);
    if (!take(self, seen, false)) return false;
  }
  if (fiber != nullptr) ++fiber->mutexes_held;
  return true;
}

void Mutex::raw_unlock() noexcept {
  FiberControl* const fiber = running_fiber();
  const Word self = word_of(fiber, kThread);
  if (fiber != nullptr) --fiber->mutexes_held;
  for (;;) {
    Word seen = self;
    // release pairs with the acquire in raw_lock.
    if (word_.compare_exchange_strong(seen, kFree, std::memory_order_release, std::memory_order_relaxed)) [[likely]]
      return;
    if (seen != (self | kContended)) detail::fatal("a mutex was unlocked by a fiber or a thread that does not hold it");
    if (leave_to_others(self)) return;
  }
}

std::expected<void, Error> Mutex::lock_contended(Word self, Deadline deadline, Shielded shielded) noexcept {
  detail::WaitNode node;
  for (bool called = false;; called = true) {
    lock_.lock();
    if (called) called_ = false;
    Word seen = word_.load(std::memory_order_relaxed);
    if (take(self, seen, called)) {
      lock_.unlock();
      return {};
    }
    const Word owner = seen & ~kContended;
    std::int64_t holder = 0;
    if (owner != kFree && owner != kThread) {
      holder = static_cast<std::int64_t>(reinterpret_cast<FiberControl*>(owner)->id.load(std::memory_order_relaxed));
      if (owner == self) {
        drop_mark();
        lock_.unlock();
        return std::unexpected(Error{ErrorCode::deadlock});
      }
    }
    node.first = called;
    auto waited =
        detail::wait_in(lock_, waiters_, node, {.kind = WaitKind::mutex, .object = holder}, deadline, shielded);
    if (!waited) {
      Locked hold(lock_);
      drop_mark();
      return waited;
    }
  }
}

// take makes the caller the owner if it may be, or marks the mutex as contended; `seen` becomes what it held then.
// Under lock_.
bool Mutex::take(Word self, Word& seen, bool called) noexcept {
  for (;;) {
    const Word mark = called_ || !waiters_.empty() ? kContended : 0;
    if ((seen & ~kContended) == kFree && (called || mark == 0 || passed_ < kMostPassed)) {
      if (!word_.compare_exchange_weak(seen, self | mark, std::memory_order_acquire, std::memory_order_relaxed))
        continue;
      passed_ = called || mark == 0 ? std::uint8_t{0} : static_cast<std::uint8_t>(passed_ + 1);
      return true;
    }
    if ((seen & kContended) != 0) return false;
    if (word_.compare_exchange_weak(seen, seen | kContended, std::memory_order_relaxed, std::memory_order_relaxed)) {
      return false;
    }
  }
}

bool Mutex::try_called() noexcept {
  FiberControl* const fiber = running_fiber();
  {
    Locked hold(lock_);
    called_ = false;
    Word seen = word_.load(std::memory_order_relaxed);
    if (!take(word_of(fiber, kThread), seen, true)) return false;
  }
  if (fiber != nullptr) ++fiber->mutexes_held;
  return true;
}

bool Mutex::mark_unless_ready() noexcept {
  Word seen = word_.load(std::memory_order_relaxed);
  for (;;) {
    const bool others = called_ || !waiters_.empty();
    if ((seen & ~kContended) == kFree) return !others || passed_ < kMostPassed;
    if ((seen & kContended) != 0) return false;
    if (word_.compare_exchange_weak(seen, seen | kContended, std::memory_order_relaxed, std::memory_order_relaxed)) {
      return false;
    }
  }
}

bool Mutex::holds_it() const noexcept {
  FiberControl* const fiber = running_fiber();
  return fiber != nullptr && (word_.load(std::memory_order_relaxed) & ~kContended) == word_of(fiber, kThread);
}

// drop_mark takes the mark of contention off a mutex for which nobody waits any more. Under lock_.
void Mutex::drop_mark() noexcept {
  const Word seen = word_.load(std::memory_order_relaxed);
  if (waiters_.empty() && !called_ && (seen & kContended) != 0)
    word_.store(seen & ~kContended, std::memory_order_relaxed);
}

// leave_to_others gives a contended mutex up and calls the first in line, unless one is called already. False: nobody
// waits any more, and the mutex, which the caller still owns, is unmarked.
bool Mutex::leave_to_others(Word self) noexcept {
  lock_.lock();
  detail::WaitNode* const next = called_ ? nullptr : detail::take_first(waiters_);
  if (next != nullptr) called_ = true;
  const bool others = called_;
  // release: as in raw_unlock. Unmarked it is left to raw_unlock, for who takes a free one may destroy it.
  word_.store(others ? kContended : self, std::memory_order_release);
  lock_.unlock();
  if (next != nullptr) detail::wake_winner(*next);
  return others;
}

std::expected<Mutex::Guard, Error> Mutex::lock_shielded() noexcept {
  if (auto held = raw_lock_shielded(); !held) return std::unexpected(held.error());
  return Guard(*this);
}

// guard_shielded can fail only where nothing can be waited for.
Mutex::Guard Mutex::guard_shielded() noexcept {
  if (!raw_lock_shielded()) detail::fatal("a locked mutex was met where nothing can be waited for");
  return Guard(*this);
}

}  // namespace coir
