#include <coir/once.h>

#include "wait/wait_round.h"

namespace coir {

std::expected<bool, Error> Once::begin(Deadline deadline) noexcept {
  lock_.lock();
  const State state = state_.load(std::memory_order_relaxed);
  if (state != State::running) {
    if (state == State::fresh) state_.store(State::running, std::memory_order_relaxed);
    lock_.unlock();
    return state == State::fresh;
  }
  detail::WaitNode node;
  bool is_next = false;
  node.slot = &is_next;
  auto waited = detail::wait_in(lock_, waiters_, node, {.kind = WaitKind::once}, deadline);
  if (!waited) return std::unexpected(waited.error());
  return is_next;
}

// end lets everybody go on after a success, and after a failure the first in line, to try its own.
void Once::end(bool succeeded) noexcept {
  detail::WakeList woken;
  lock_.lock();
  if (succeeded) {
    // release pairs with the acquire in done.
    state_.store(State::done, std::memory_order_release);
    woken.add_all(waiters_);
  } else if (detail::WaitNode* const next = detail::take_first(waiters_); next != nullptr) {
    *static_cast<bool*>(next->slot) = true;
    woken.add(*next);
  } else {
    state_.store(State::fresh, std::memory_order_relaxed);
  }
  lock_.unlock();
  woken.wake_all();
}

}  // namespace coir
