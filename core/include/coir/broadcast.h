#pragma once

// One publisher, any number of subscribers.
//
//   Broadcast<int> news;
//   Subscription<int> feed(news, {.capacity = 8, .when_slow = WhenSlow::drop_oldest});
//   static_cast<void>(news.publish(42));                                  // never waits for a subscriber
//   while (auto story = feed.receive(deadline)) show(*story);

#include <coir/port/needs_fibers.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <type_traits>
#include <utility>

#include <coir/channel.h>
#include <coir/deadline.h>
#include <coir/detail/construct.h>
#include <coir/error.h>
#include <coir/mutex.h>

namespace coir {

// WhenSlow says what happens to a message for which a subscriber's buffer has no room. The publisher never waits, and
// the subscription counts what it missed.
enum class WhenSlow : std::uint8_t {
  drop_oldest,  // the oldest message that lies in the buffer makes room: the subscriber sees what is new
  count,        // the message is left out: the subscriber sees what came first, and how much it missed
  disconnect,   // the subscription ends: the subscriber drains its buffer and then gets `closed`
};

struct SubscriptionOptions {
  std::size_t capacity = 16;  // messages; at least 1
  WhenSlow when_slow = WhenSlow::drop_oldest;
  Account* account = &account::channels;
};

namespace detail {

class BroadcastCore;

// SubscriberCore is a subscription to messages of any type.
class SubscriberCore {
 public:
  SubscriberCore(BroadcastCore& broadcast, const Element& element, const SubscriptionOptions& options) noexcept;
  ~SubscriberCore();
  SubscriberCore(const SubscriberCore&) = delete;
  SubscriberCore& operator=(const SubscriberCore&) = delete;

  std::uint64_t missed() const noexcept { return missed_.load(std::memory_order_relaxed); }

 protected:
  ChannelCore channel_;

 private:
  friend class BroadcastCore;

  bool deliver(void* message, void* scratch, void (*destroy)(void*) noexcept) noexcept;

  BroadcastCore* broadcast_;
  WhenSlow when_slow_;
  Atomic<std::uint64_t> missed_{0};  // the publisher's count
  SubscriberCore* next_ = nullptr;   // one link: a second would make every Subscription larger
};

// BroadcastCore publishes messages of any type.
class BroadcastCore {
 public:
  constexpr BroadcastCore() noexcept = default;
  ~BroadcastCore();
  BroadcastCore(const BroadcastCore&) = delete;
  BroadcastCore& operator=(const BroadcastCore&) = delete;

  // publish makes a copy at `copied` for each subscriber and delivers it; what makes room passes through `dropped`.
  std::expected<std::size_t, Error> publish(const void* message, void* copied, void* dropped,
                                            void (*copy)(void*, const void*), void (*destroy)(void*) noexcept) noexcept;
  void close() noexcept;
  std::size_t subscribers() noexcept;

 private:
  friend class SubscriberCore;

  Mutex mutex_;  // held while messages are copied, never across a wait
  bool closed_ = false;
  SubscriberCore* first_ = nullptr;
};

}  // namespace detail

template <class T>
class Subscription;

// Broadcast delivers each published message to all current subscribers. Each has its own buffer, of its own size, and
// its own policy for a message that finds it full.
//
// Fibers and threads publish and subscribe in any mix. All subscribers get messages in one order.
template <class T>
class Broadcast {
  static_assert(std::is_copy_constructible_v<T>, "each subscriber gets a copy");

 public:
  constexpr Broadcast() noexcept = default;
  // Destroying a broadcast that has subscribers ends the process with a line that says so.

  // publish copies the message to every subscriber and tells how many have it. It waits for other publishers and for
  // subscriptions that begin or end, for a moment and not cancelled, and for nothing else. Errors: closed, unsupported.
  // A subscriber whose account has no room misses the message, whatever its policy.
  std::expected<std::size_t, Error> publish(const T& message) noexcept {
    detail::Space<T> copied, dropped;
    return core_.publish(
        std::addressof(message), std::addressof(copied.value), std::addressof(dropped.value),
        [](void* to, const void* from) { std::construct_at(static_cast<T*>(to), *static_cast<const T*>(from)); },
        detail::kElement<T>.destroy);
  }

  // close ends the broadcast: subscribers drain their buffers and then get `closed`.
  void close() noexcept { core_.close(); }

  // subscribers is how many there are at this moment.
  std::size_t subscribers() noexcept { return core_.subscribers(); }

 private:
  friend class Subscription<T>;

  detail::BroadcastCore core_;
};

// Subscription gets what is published while it lives. It may be waited for in a select: Case::receive(subscription,
// message).
template <class T>
class Subscription : detail::SubscriberCore {
 public:
  explicit Subscription(Broadcast<T>& broadcast, const SubscriptionOptions& options = {}) noexcept
      : SubscriberCore(broadcast.core_, detail::kElement<T>, options) {}

  // receive waits for the next message. Fiber or thread. Errors: timed_out, cancelled, closed (the broadcast was, or
  // this subscription was too slow; its messages are drained), unsupported.
  [[nodiscard]] std::expected<T, Error> receive(Deadline deadline = Deadline::never()) noexcept {
    return detail::receive_from<T>(channel_, deadline);
  }

  // missed is how many messages found no room.
  using SubscriberCore::missed;

  // waiting is how many lie in the buffer.
  std::size_t waiting() const noexcept { return channel_.size(); }

 private:
  friend class Case;
};

}  // namespace coir
