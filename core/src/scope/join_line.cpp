#include "scope/join.h"

// The list of those that wait for a fiber's end, as join.h describes it.

namespace coir {

bool stand_in_line(FiberControl* fiber, std::uint64_t id, detail::WaitNode& node) noexcept {
  std::uint32_t join = fiber->join.load(std::memory_order_acquire);
  for (SpinWait turn;;) {
    if (join == FiberControl::kListing) {
      turn.pause();
      join = fiber->join.load(std::memory_order_acquire);
    } else if (join != FiberControl::kOpen && join != FiberControl::kWaiting) {
      return false;
    } else if (fiber->join.compare_exchange_weak(join, FiberControl::kListing, std::memory_order_acquire,
                                                 std::memory_order_acquire)) {
      break;
    }
  }
  // If the handle was joined meanwhile, the slot may hold another fiber.
  const bool same = fiber->id.load(std::memory_order_relaxed) == id;
  if (same) {
    node.told.store(false, std::memory_order_relaxed);
    node.next = fiber->waiting;
    fiber->waiting = &node;
    join = FiberControl::kWaiting;
  }
  // release publishes the list to the next that changes it, and to end_fiber.
  fiber->join.store(join, std::memory_order_release);
  return same;
}

bool take_out_of_line(FiberControl* fiber, detail::WaitNode& node) noexcept {
  // acquire pairs with the release in tell_waiting: the node is the caller's again.
  for (SpinWait turn; !node.told.load(std::memory_order_acquire); turn.pause()) {
    std::uint32_t join = FiberControl::kWaiting;
    if (!fiber->join.compare_exchange_strong(join, FiberControl::kListing, std::memory_order_acquire,
                                             std::memory_order_relaxed)) {
      continue;
    }
    const bool listed = !node.told.load(std::memory_order_acquire);
    if (listed) {
      detail::WaitNode** at = &fiber->waiting;
      while (*at != &node) at = &(*at)->next;
      *at = node.next;
    }
    fiber->join.store(fiber->waiting == nullptr ? FiberControl::kOpen : FiberControl::kWaiting,
                      std::memory_order_release);
    if (listed) return true;
  }
  return false;
}

bool tell_waiting(FiberControl* fiber, bool outcome) noexcept {
  detail::WaitNode* oldest = nullptr;
  while (detail::WaitNode* const node = fiber->waiting) {
    fiber->waiting = std::exchange(node->next, oldest);
    oldest = node;
  }
  bool taken = !outcome;
  detail::WaitNode** woken = &fiber->waiting;
  while (detail::WaitNode* const node = oldest) {
    oldest = std::exchange(node->next, nullptr);
    // Before the claim, whose release publishes it.
    node->takes = node->takes && !taken;
    const bool takes = node->takes;
    Waiter& waiter = *node->round->waiter;
    const bool visits = JoiningThread::is(waiter);
    if (visits) door::enter_again();
    const Waiter::Claim won = waiter.claim(WakeReason::joined);
    if (won == Waiter::Claim::lost && visits) door::leave();
    taken = taken || (takes && won != Waiter::Claim::lost);
    if (won == Waiter::Claim::parked) {
      *woken = node;
      woken = &node->next;
    }
    // release pairs with the acquire in take_out_of_line. Only a parked waiter's node is still there afterwards.
    node->told.store(true, std::memory_order_release);
  }
  return taken && outcome;
}

void wake_told(detail::WaitNode* list) noexcept {
  while (detail::WaitNode* const node = list) {
    list = node->next;
    node->round->waiter->wake();
  }
}

}  // namespace coir
