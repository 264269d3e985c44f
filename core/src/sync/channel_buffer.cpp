#include "sync/channel_buffer.h"

#include <coir/detail/fatal.h>
#include <stdlib.h>

#include <algorithm>

#include "wait/wait_round.h"

namespace coir::detail {

namespace {

constexpr std::size_t kSegmentBytes = 496;

}  // namespace

ChannelCore::ChannelCore(const Element& element, const ChannelOptions& options) noexcept
    : element_(&element), capacity_(options.capacity), account_(options.account) {
  const std::size_t fit = std::max<std::size_t>(kSegmentBytes / element.bytes, 1);
  const std::size_t all = capacity_ == kUnbounded ? fit : capacity_;
  // A capacity that no segment can have is refused when the segment is wanted.
  per_segment_ = static_cast<std::uint32_t>(std::min<std::size_t>(all, UINT32_MAX));
}

ChannelCore::~ChannelCore() {
  if (!senders_.empty() || !receivers_.empty()) {
    fatal("a channel was destroyed while somebody waited on it");
  }
  while (count_ != 0) {
    element_->destroy(front());
    if (Segment* const dead = drop_front(); dead != nullptr) free(dead);
  }
  if (!segments_.empty()) free(segments_.front());
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
  const bool wanted = spare_ == nullptr && (capacity_ == kUnbounded || segments_.empty());
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
  woken.wake_all();
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
