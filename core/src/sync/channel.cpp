#include <coir/channel.h>

#include <coir/budget.h>

#include "sync/channel_buffer.h"
#include "wait/wait_round.h"

namespace coir::detail {

// send and receive have everything inline that they need up to the switch.
std::expected<void, Error> ChannelCore::send(void* value, Deadline deadline) noexcept {
  spend_budget();
  lock_.lock();
  switch (try_send(value)) {
    case Step::done:
      return {};
    case Step::closed:
      return std::unexpected(Error{ErrorCode::closed});
    case Step::no_memory:
      return std::unexpected(Error{ErrorCode::no_memory});
    case Step::full_or_empty:
      break;
  }
  if (deadline.ns() <= 0) {
    lock_.unlock();
    return std::unexpected(Error{ErrorCode::timed_out});
  }
  WaitNode node;
  node.slot = value;
  auto waited = wait_in_here(lock_, senders_, node, {.kind = WaitKind::send}, deadline);
  if (node.closed) return std::unexpected(Error{ErrorCode::closed});
  return waited;
}

std::expected<void, Error> ChannelCore::receive(void* into, Deadline deadline, bool replaces) noexcept {
  spend_budget();
  lock_.lock();
  switch (try_receive(into, replaces)) {
    case Step::done:
      return {};
    case Step::closed:
      return std::unexpected(Error{ErrorCode::closed});
    case Step::no_memory:
    case Step::full_or_empty:
      break;
  }
  if (deadline.ns() <= 0) {
    lock_.unlock();
    return std::unexpected(Error{ErrorCode::timed_out});
  }
  WaitNode node;
  node.slot = into;
  node.replaces = replaces;
  auto waited = wait_in_here(lock_, receivers_, node, {.kind = WaitKind::receive}, deadline);
  if (node.closed) return std::unexpected(Error{ErrorCode::closed});
  return waited;
}

[[gnu::always_inline]] inline ChannelCore::Step ChannelCore::try_send(void* value) noexcept {
  for (;;) {
    if (WaitNode* const receiver = take_first(receivers_); receiver != nullptr) {
      lock_.unlock();
      place(receiver->slot, receiver->replaces, value, element_->move);
      wake_winner(*receiver);
      return Step::done;
    }
    if (closed_) [[unlikely]] {
      lock_.unlock();
      return Step::closed;
    }
    if (count_ >= capacity_) return Step::full_or_empty;
    if (has_room()) [[likely]]
      break;
    lock_.unlock();  // no allocation under the lock
    if (!grow()) return Step::no_memory;
    lock_.lock();
  }
  put(value);
  lock_.unlock();
  return Step::done;
}

// leave_front takes the first value, which is gone, off the buffer, lets the first sender in and gives up the lock.
[[gnu::always_inline]] inline void ChannelCore::leave_front() noexcept {
  Segment* const dead = drop_front();
  WaitNode* sender = nullptr;
  if (!senders_.empty() && (sender = take_first(senders_)) != nullptr) {  // the buffer was full: a ring
    put(sender->slot);
  }
  lock_.unlock();
  if (sender != nullptr) wake_winner(*sender);
  if (dead != nullptr) free(dead);
}

[[gnu::always_inline]] inline ChannelCore::Step ChannelCore::try_receive(void* into, bool replaces) noexcept {
  if (count_ != 0) {
    if (replaces && !element_->trivial) {
      element_->replace(into, front(), [](void* of) noexcept { static_cast<ChannelCore*>(of)->leave_front(); }, this);
    } else {
      element_->relocate(into, front());
      leave_front();
    }
    return Step::done;
  }
  if (WaitNode* const sender = take_first(senders_); sender != nullptr) {
    lock_.unlock();
    place(into, replaces, sender->slot, element_->move);
    wake_winner(*sender);
    return Step::done;
  }
  if (!closed_) return Step::full_or_empty;
  lock_.unlock();
  return Step::closed;
}

bool ChannelCore::may_send() const noexcept {
  return closed_ || count_ < capacity_ || !receivers_.empty();
}

bool ChannelCore::may_receive() const noexcept {
  return closed_ || count_ != 0 || !senders_.empty();
}

}  // namespace coir::detail
