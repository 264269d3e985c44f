#include <coir/broadcast.h>

#include <coir/detail/fatal.h>

namespace coir::detail {

SubscriberCore::SubscriberCore(BroadcastCore& broadcast, const Element& element,
                               const SubscriptionOptions& options) noexcept
    : channel_(element, {.capacity = options.capacity != 0 ? options.capacity : 1, .account = options.account}),
      broadcast_(&broadcast),
      when_slow_(options.when_slow) {
  const Mutex::Guard hold = broadcast.mutex_.guard_shielded();
  if (broadcast.closed_) channel_.close();
  next_ = broadcast.first_;
  broadcast.first_ = this;
}

SubscriberCore::~SubscriberCore() {
  const Mutex::Guard hold = broadcast_->mutex_.guard_shielded();
  SubscriberCore** at = &broadcast_->first_;
  while (*at != this) at = &(*at)->next_;
  *at = next_;
}

// deliver moves the message into the buffer, or does what is to be done when that is full. Under the broadcast's mutex:
// nobody else sends here.
bool SubscriberCore::deliver(void* message, void* scratch, void (*destroy)(void*) noexcept) noexcept {
  for (;;) {
    const auto sent = channel_.send(message, Deadline::now());
    if (sent) return true;
    if (sent.error() == ErrorCode::closed) return false;
    bump(missed_);
    if (sent.error() != ErrorCode::timed_out || when_slow_ == WhenSlow::count) return false;
    if (when_slow_ == WhenSlow::disconnect) {
      channel_.close();
      return false;
    }
    // The subscriber may be quicker: then there is room all the same, and nothing was missed.
    if (channel_.receive(scratch, Deadline::now())) {
      destroy(scratch);
    } else {
      bump(missed_, ~std::uint64_t{0});
    }
  }
}

BroadcastCore::~BroadcastCore() {
  if (first_ == nullptr) return;
  fatal("a broadcast was destroyed while somebody was subscribed to it");
}

std::expected<std::size_t, Error> BroadcastCore::publish(const void* message, void* copied, void* dropped,
                                                         void (*copy)(void*, const void*),
                                                         void (*destroy)(void*) noexcept) noexcept {
  const auto held = mutex_.lock_shielded();
  if (!held) return std::unexpected(held.error());
  if (closed_) return std::unexpected(Error{ErrorCode::closed});
  std::size_t delivered = 0;
  for (SubscriberCore* one = first_; one != nullptr; one = one->next_) {
    copy(copied, message);
    delivered += one->deliver(copied, dropped, destroy);
    destroy(copied);  // moved from, or not wanted
  }
  return delivered;
}

void BroadcastCore::close() noexcept {
  const Mutex::Guard hold = mutex_.guard_shielded();
  closed_ = true;
  for (SubscriberCore* one = first_; one != nullptr; one = one->next_) one->channel_.close();
}

std::size_t BroadcastCore::subscribers() noexcept {
  const Mutex::Guard hold = mutex_.guard_shielded();
  std::size_t count = 0;
  for (const SubscriberCore* one = first_; one != nullptr; one = one->next_) ++count;
  return count;
}

}  // namespace coir::detail
