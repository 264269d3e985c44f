#include "wait/wait_round.h"

namespace coir::detail {

WaitNode* WaitRound::spin_for_winner() noexcept {
  for (SpinWait turn;; turn.pause()) {
    if (WaitNode* const node = winner.load(std::memory_order_acquire); node != nullptr) return node;
  }
}

bool all_inside(const WaitList& line, std::size_t count) noexcept {
  for (const WaitNode* node = line.front(); node != nullptr && count != 0; node = node->next) {
    if (node->inside && node->round->waiter->reason() == WakeReason::none) --count;
  }
  return count == 0;
}

std::unexpected<Error> withdraw(Spinlock& lock, WaitList& list, WaitNode& node, WakeReason reason) noexcept {
  lock.lock();
  if (node.queued) list.remove(node);
  lock.unlock();
  return std::unexpected(error_of(reason));
}

std::expected<void, Error> wait_in(Spinlock& lock, WaitList& list, WaitNode& node, WaitFor what, Deadline deadline,
                                   Shielded shielded, ReleaseInLine release, void* of) noexcept {
  return wait_in_here(lock, list, node, what, deadline, shielded, release, of);
}

std::expected<void, Error> wait_in_on_thread(Spinlock& lock, WaitList& list, WaitNode& node, Deadline deadline,
                                             Shielded shielded, ReleaseInLine release, void* of) noexcept {
  const bool impatient = deadline.ns() <= 0;
  if (impatient || this_worker() != nullptr || !kManyWorkers) {
    lock.unlock();
    return std::unexpected(Error{impatient ? ErrorCode::timed_out : ErrorCode::unsupported});
  }
  ThreadWaiter thread;
  WaitRound round(thread);
  node.round = &round;
  thread.arm();
  list.push(node);
  lock.unlock();
  if (release != nullptr) release(of);
  const WakeReason reason = thread.park(deadline, shielded);
  if (reason == WakeReason::handed) {
    round.await_winner();
    return {};
  }
  return withdraw(lock, list, node, reason);
}

}  // namespace coir::detail
