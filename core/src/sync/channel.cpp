#include <coir/channel.h>

#include <stdio.h>
#include <stdlib.h>

#include <algorithm>

#include "wait/wait_round.h"

namespace coir::detail {

struct alignas(std::max_align_t) ChannelCore::Segment {
  Segment* next;

  std::byte* slots() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
};

namespace {

constexpr std::size_t kSegmentBytes = 496;
constexpr std::size_t kMostAtOnce = 32;  // how many values are moved while others wait for the lock

}  // namespace

// send and receive have everything inline that they need up to the switch.
std::expected<void, Error> ChannelCore::send(void* value, Deadline deadline) noexcept {
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

[[gnu::always_inline]] inline void ChannelCore::place(void* into, bool replaces, void* from,
                                                      void (*how)(void*, void*) noexcept) noexcept {
  if (replaces) element_->destroy(into);
  how(into, from);
}

[[gnu::always_inline]] inline void* ChannelCore::front() noexcept {
  return first_->slots() + head_ * element_->bytes;
}

[[gnu::always_inline]] inline void* ChannelCore::back() noexcept {
  return last_->slots() + tail_ * element_->bytes;
}

// has_room tells whether back() may be filled, once it has put the spare segment in place where one is needed.
[[gnu::always_inline]] inline bool ChannelCore::has_room() noexcept {
  if (last_ != nullptr && tail_ < per_segment_) [[likely]]
    return true;
  if (spare_ == nullptr) return false;
  spare_->next = nullptr;
  (last_ != nullptr ? last_->next : first_) = spare_;
  last_ = spare_;
  spare_ = nullptr;
  tail_ = 0;
  return true;
}

[[gnu::always_inline]] inline ChannelCore::Step ChannelCore::try_send(void* value) noexcept {
  for (;;) {
    if (WaitNode* const receiver = take_first(receivers_); receiver != nullptr) {
      lock_.unlock();
      place(receiver->slot, receiver->replaces, value, element_->move);
      settle(*receiver);
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

// put moves a value to the back, where there is room.
[[gnu::always_inline]] inline void ChannelCore::put(void* value) noexcept {
  element_->move(back(), value);
  ++count_;
  if (++tail_ == per_segment_ && capacity_ != kUnbounded) tail_ = 0;
}

[[gnu::always_inline]] inline ChannelCore::Step ChannelCore::try_receive(void* into, bool replaces) noexcept {
  if (count_ != 0) {
    place(into, replaces, front(), element_->relocate);
    Segment* const dead = drop_front();
    WaitNode* sender = nullptr;
    if (!senders_.empty() && (sender = take_first(senders_)) != nullptr) {  // the buffer was full: a ring
      put(sender->slot);
    }
    lock_.unlock();
    if (sender != nullptr) settle(*sender);
    if (dead != nullptr) free(dead);
    return Step::done;
  }
  if (WaitNode* const sender = take_first(senders_); sender != nullptr) {
    lock_.unlock();
    place(into, replaces, sender->slot, element_->move);
    settle(*sender);
    return Step::done;
  }
  if (!closed_) return Step::full_or_empty;
  lock_.unlock();
  return Step::closed;
}

// drop_front takes the first value off the count and returns a segment that is to be freed, if any.
[[gnu::always_inline]] inline ChannelCore::Segment* ChannelCore::drop_front() noexcept {
  --count_;
  ++head_;
  if (capacity_ != kUnbounded) {
    if (head_ == per_segment_) head_ = 0;
    return nullptr;
  }
  if (count_ == 0) {  // only one segment is left, for an empty one is never added
    head_ = tail_ = 0;
    return nullptr;
  }
  if (head_ < per_segment_) return nullptr;
  Segment* const dead = first_;
  first_ = dead->next;
  head_ = 0;
  if (spare_ != nullptr) return dead;
  spare_ = dead;
  return nullptr;
}

std::size_t ChannelCore::try_send_many(std::byte* values, std::size_t count) noexcept {
  WakeList woken;
  std::size_t sent = 0;
  lock_.lock();
  for (const std::size_t most = std::min(count, kMostAtOnce); sent < most; ++sent) {
    void* const value = values + sent * element_->bytes;
    if (WaitNode* const receiver = take_first(receivers_); receiver != nullptr) {
      place(receiver->slot, receiver->replaces, value, element_->move);
      woken.add(*receiver);
    } else if (!closed_ && count_ < capacity_ && has_room()) {
      put(value);
    } else {
      break;
    }
  }
  lock_.unlock();
  woken.settle();
  return sent;
}

std::size_t ChannelCore::try_receive_many(std::byte* into, std::size_t count) noexcept {
  WakeList woken;
  Segment* dead = nullptr;
  std::size_t received = 0;
  lock_.lock();
  for (const std::size_t most = std::min(count, kMostAtOnce); received < most; ++received) {
    void* const place_for_it = into + received * element_->bytes;
    if (count_ != 0) {
      place(place_for_it, true, front(), element_->relocate);
      if (Segment* const left = drop_front(); left != nullptr) {
        left->next = dead;
        dead = left;
      }
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
  woken.settle();
  while (dead != nullptr) free(std::exchange(dead, dead->next));
  return received;
}

std::expected<std::size_t, Error> ChannelCore::send_many(void* values, std::size_t count, Deadline deadline) noexcept {
  auto* const first = static_cast<std::byte*>(values);
  std::size_t sent = 0;
  while (sent < count) {
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
  if (count == 0) return std::size_t{0};
  if (const std::size_t there = try_receive_many(first, count); there != 0) return there;
  if (auto waited = receive(into, deadline, true); !waited) return std::unexpected(waited.error());
  return 1 + try_receive_many(first + element_->bytes, count - 1);
}

bool ChannelCore::may_send() const noexcept {
  return closed_ || count_ < capacity_ || !receivers_.empty();
}

bool ChannelCore::may_receive() const noexcept {
  return closed_ || count_ != 0 || !senders_.empty();
}

ChannelCore::ChannelCore(const Element& element, const ChannelOptions& options) noexcept
    : element_(&element), capacity_(options.capacity), account_(options.account) {
  const std::size_t fit = std::max<std::size_t>(kSegmentBytes / element.bytes, 1);
  const std::size_t all = capacity_ == kUnbounded ? fit : capacity_;
  // A capacity that no segment can have is refused when the segment is wanted.
  per_segment_ = static_cast<std::uint32_t>(std::min<std::size_t>(all, UINT32_MAX));
}

ChannelCore::~ChannelCore() {
  if (!senders_.empty() || !receivers_.empty()) {
    fputs("coir: a channel was destroyed while somebody waited on it\n", stderr);
    abort();
  }
  while (count_ != 0) {
    element_->destroy(front());
    if (Segment* const dead = drop_front(); dead != nullptr) free(dead);
  }
  if (first_ != nullptr) free(first_);
  if (spare_ != nullptr) free(spare_);
}

ChannelCore::Segment* ChannelCore::allocate() noexcept {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(element_->bytes, std::size_t{per_segment_}, &bytes) ||
      (capacity_ != kUnbounded && per_segment_ != capacity_) || !account_->charge(bytes + sizeof(Segment))) {
    return nullptr;
  }
  void* const memory = malloc(bytes + sizeof(Segment));
  if (memory == nullptr) {
    account_->refund(bytes + sizeof(Segment));
    return nullptr;
  }
  return new (memory) Segment{};
}

void ChannelCore::free(Segment* segment) noexcept {
  ::free(segment);
  account_->refund(element_->bytes * per_segment_ + sizeof(Segment));
}

// grow puts a spare segment by. Without the lock.
std::expected<void, Error> ChannelCore::grow() noexcept {
  Segment* fresh = allocate();
  if (fresh == nullptr) return std::unexpected(Error{ErrorCode::no_memory});
  lock_.lock();
  const bool wanted = spare_ == nullptr && (capacity_ == kUnbounded || first_ == nullptr);
  if (wanted) spare_ = std::exchange(fresh, nullptr);
  lock_.unlock();
  if (fresh != nullptr) free(fresh);  // another sender was quicker
  return {};
}

void ChannelCore::close() noexcept {
  WakeList woken;
  lock_.lock();
  closed_ = true;
  for (WaitList* const list : {&senders_, &receivers_}) {
    while (WaitNode* const waiting = take_first(*list)) {
      waiting->closed = true;
      woken.add(*waiting);
    }
  }
  lock_.unlock();
  woken.settle();
}

std::size_t ChannelCore::size() const noexcept {
  Locked hold(lock_);
  return count_;
}

bool ChannelCore::closed() const noexcept {
  Locked hold(lock_);
  return closed_;
}

}  // namespace coir::detail
