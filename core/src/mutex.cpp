#include <coir/mutex.h>

#include <stdio.h>
#include <stdlib.h>

#include "wait_round.h"

namespace coir {

namespace {

// word_of is how the caller signs for a mutex.
std::uintptr_t word_of(FiberControl* fiber, std::uintptr_t thread) noexcept {
  return fiber != nullptr ? reinterpret_cast<std::uintptr_t>(fiber) : thread;
}

[[noreturn]] void stop_for_wrong_owner() noexcept {
  fputs("coir: a mutex was unlocked by a fiber or a thread that does not hold it\n", stderr);
  abort();
}

}  // namespace

std::expected<void, Error> Mutex::lock(Deadline deadline) noexcept {
  FiberControl* const fiber = running_fiber();
  const Word self = word_of(fiber, kThread);
  Word seen = kFree;
  // acquire pairs with the release in unlock.
  if (!word_.compare_exchange_strong(seen, self, std::memory_order_acquire, std::memory_order_relaxed)) [[unlikely]]
    return lock_contended(self, deadline, false);
  if (fiber != nullptr) ++fiber->mutexes_held;
  return {};
}

bool Mutex::try_lock() noexcept {
  FiberControl* const fiber = running_fiber();
  Word seen = kFree;
  if (!word_.compare_exchange_strong(seen, word_of(fiber, kThread), std::memory_order_acquire,
                                     std::memory_order_relaxed)) {
    return false;
  }
  if (fiber != nullptr) ++fiber->mutexes_held;
  return true;
}

void Mutex::unlock() noexcept {
  FiberControl* const fiber = running_fiber();
  const Word self = word_of(fiber, kThread);
  if (fiber != nullptr) --fiber->mutexes_held;
  Word seen = self;
  // release pairs with the acquire in lock.
  if (word_.compare_exchange_strong(seen, kFree, std::memory_order_release, std::memory_order_relaxed)) [[likely]]
    return;
  if (seen != (self | kContended)) stop_for_wrong_owner();
  unlock_contended();
}

std::expected<void, Error> Mutex::lock_contended(Word self, Deadline deadline, bool shielded) noexcept {
  lock_.lock();
  Word seen = word_.load(std::memory_order_relaxed);
  for (;;) {
    if (seen == kFree) {
      if (word_.compare_exchange_weak(seen, self, std::memory_order_acquire, std::memory_order_relaxed)) {
        lock_.unlock();
        if (self != kThread) ++reinterpret_cast<FiberControl*>(self)->mutexes_held;
        return {};
      }
    } else if ((seen & kContended) != 0 ||
               word_.compare_exchange_weak(seen, seen | kContended, std::memory_order_relaxed,
                                           std::memory_order_relaxed)) {
      break;
    }
  }
  const Word owner = seen & ~kContended;
  std::int64_t holder = 0;
  if (owner != kThread) {
    holder = static_cast<std::int64_t>(reinterpret_cast<FiberControl*>(owner)->id.load(std::memory_order_relaxed));
    if (owner == self) {
      pass_on();
      lock_.unlock();
      return std::unexpected(Error{ErrorCode::deadlock});
    }
  }
  detail::WaitNode node;
  node.slot = reinterpret_cast<void*>(self);
  auto waited = detail::wait_in(lock_, waiters_, node, {.kind = WaitKind::mutex, .object = holder}, deadline,
                                shielded ? Shielded::yes : Shielded::no);
  if (!waited) {
    lock_.lock();
    pass_on();
    lock_.unlock();
    return waited;
  }
  if (self != kThread) ++reinterpret_cast<FiberControl*>(self)->mutexes_held;
  return {};
}

// pass_on takes the mark of contention off a mutex for which nobody waits any more. Under lock_.
void Mutex::pass_on() noexcept {
  const Word seen = word_.load(std::memory_order_relaxed);
  if (waiters_.empty() && (seen & kContended) != 0) word_.store(seen & ~kContended, std::memory_order_relaxed);
}

// unlock_contended makes the first in line the owner: nobody can come in between, and it finds the mutex its own.
void Mutex::unlock_contended() noexcept {
  lock_.lock();
  detail::WaitNode* const next = detail::take_first(waiters_);
  const Word owner = next != nullptr ? reinterpret_cast<Word>(next->slot) : kFree;
  // release: as in unlock, for who takes a free one; the next in line synchronises by settle.
  word_.store(waiters_.empty() ? owner : owner | kContended, std::memory_order_release);
  lock_.unlock();
  if (next != nullptr) detail::settle(*next);
}

std::expected<void, Error> Mutex::lock_shielded() noexcept {
  FiberControl* const fiber = running_fiber();
  const Word self = word_of(fiber, kThread);
  Word seen = kFree;
  if (!word_.compare_exchange_strong(seen, self, std::memory_order_acquire, std::memory_order_relaxed))
    return lock_contended(self, Deadline::never(), true);
  if (fiber != nullptr) ++fiber->mutexes_held;
  return {};
}

// guard_shielded can fail only where nothing can be waited for.
Mutex::Guard Mutex::guard_shielded() noexcept {
  if (!lock_shielded()) {
    fputs("coir: a locked mutex was met where nothing can be waited for\n", stderr);
    abort();
  }
  return Guard(*this);
}

}  // namespace coir
