#include <coir/channel.h>

#include <coir/budget.h>

#include <algorithm>

#include "sync/channel_buffer.h"
#include "wait/wait_round.h"

namespace coir::detail {

namespace {

constexpr std::size_t kMostAtOnce = 32;  // how many values are moved while others wait for the lock

}  // namespace

std::size_t ChannelCore::try_send_many(std::byte* values, std::size_t count) noexcept {
  WakeList woken;
  std::size_t sent = 0;
  lock_.lock();
  for (const std::size_t most = std::min(count, kMostAtOnce); sent < most; ++sent) {
    void* const value = values + sent * element_->bytes;
    if (WaitNode* const receiver = take_first(receivers_); receiver != nullptr) {
      if (element_->trivial) {
        place(receiver->slot, receiver->replaces, value, element_->move);
        woken.add(*receiver);
      } else {
        lock_.unlock();
        place(receiver->slot, receiver->replaces, value, element_->move);
        wake_winner(*receiver);
        lock_.lock();
      }
    } else if (!closed_ && count_ < capacity_ && has_room()) {
      put(value);
    } else {
      break;
    }
  }
  lock_.unlock();
  woken.wake_all();
  return sent;
}

// Values that are destroyed by foreign code are received one by one.
std::size_t ChannelCore::try_receive_many(std::byte* into, std::size_t count) noexcept {
  if (!element_->trivial) {
    std::size_t one_by_one = 0;
    for (; one_by_one < count && receive(into + one_by_one * element_->bytes, Deadline::now(), true); ++one_by_one) {
    }
    return one_by_one;
  }
  WakeList woken;
  IntrusiveStack<Segment> dead;
  std::size_t received = 0;
  lock_.lock();
  for (const std::size_t most = std::min(count, kMostAtOnce); received < most; ++received) {
    void* const place_for_it = into + received * element_->bytes;
    if (count_ != 0) {
      place(place_for_it, true, front(), element_->relocate);
      if (Segment* const left = drop_front(); left != nullptr) dead.push(*left);
      if (WaitNode* const sender = take_first(senders_); sender != nullptr) {  // the buffer was full
        put(sender->slot);
        woken.add(*sender);
      }
    } else if (WaitNode* const sender = take_first(senders_); sender != nullptr) {
      place(place_for_it, true, sender->slot, element_->move);
      woken.add(*sender);
    } else {
      break;
    }
  }
  lock_.unlock();
  woken.wake_all();
  while (Segment* const left = dead.pop()) free(left);
  return received;
}

std::expected<std::size_t, Error> ChannelCore::send_many(void* values, std::size_t count, Deadline deadline) noexcept {
  auto* const first = static_cast<std::byte*>(values);
  std::size_t sent = 0;
  while (sent < count) {
    spend_budget();
    if (const std::size_t some = try_send_many(first + sent * element_->bytes, count - sent); some != 0) {
      sent += some;
      continue;
    }
    if (auto waited = send(first + sent * element_->bytes, deadline); !waited) {
      if (sent == 0) return std::unexpected(waited.error());
      break;
    }
    ++sent;
  }
  return sent;
}

std::expected<std::size_t, Error> ChannelCore::receive_up_to(void* into, std::size_t count,
                                                             Deadline deadline) noexcept {
  auto* const first = static_cast<std::byte*>(into);
  spend_budget();
  if (count == 0) return std::size_t{0};
  if (const std::size_t there = try_receive_many(first, count); there != 0) return there;
  if (auto waited = receive(into, deadline, true); !waited) return std::unexpected(waited.error());
  return 1 + try_receive_many(first + element_->bytes, count - 1);
}

}  // namespace coir::detail
