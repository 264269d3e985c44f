#pragma once

#include <coir/channel.h>

#include <utility>

namespace coir::detail {

// The buffer of a channel, for channel.cpp and channel_many.cpp, which have these steps inline, and channel_buffer.cpp.
// Under the channel's lock, but for `place`.

struct alignas(std::max_align_t) ChannelCore::Segment {
  Segment* next;

  std::byte* slots() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
};

// place hands a value over. Under the lock only where to destroy one is nothing.
[[gnu::always_inline]] inline void ChannelCore::place(void* into, bool replaces, void* from,
                                                      void (*how)(void*, void*) noexcept) noexcept {
  if (replaces) element_->destroy(into);
  how(into, from);
}

[[gnu::always_inline]] inline void* ChannelCore::front() noexcept {
  return segments_.front()->slots() + head_ * element_->bytes;
}

[[gnu::always_inline]] inline void* ChannelCore::back() noexcept {
  return segments_.back()->slots() + tail_ * element_->bytes;
}

// has_room tells whether back() may be filled, once it has put the spare segment in place where one is needed.
[[gnu::always_inline]] inline bool ChannelCore::has_room() noexcept {
  if (segments_.back() != nullptr && tail_ < per_segment_) [[likely]]
    return true;
  if (spare_ == nullptr) return false;
  segments_.push(*std::exchange(spare_, nullptr));
  tail_ = 0;
  return true;
}

// put moves a value to the back, where there is room.
[[gnu::always_inline]] inline void ChannelCore::put(void* value) noexcept {
  element_->move(back(), value);
  ++count_;
  if (++tail_ == per_segment_ && capacity_ != kUnbounded) tail_ = 0;
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
  Segment* const dead = segments_.pop();
  head_ = 0;
  if (spare_ != nullptr) return dead;
  spare_ = dead;
  return nullptr;
}

}  // namespace coir::detail
