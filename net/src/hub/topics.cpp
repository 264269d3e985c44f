// Subscriptions of sockets to topics, and publishing to their subscribers.
#include <coir/detail/accounts.h>
#include <coir/pressure.h>
#include <coir/sum.h>
#include <coir/utf8.h>
#include <string.h>

#include "hub/socket_table.h"

#if !COIR_NO_ASYNC
#include <coir/cancel_scope.h>
#endif

namespace coir::http {
namespace {

#if !COIR_NO_ASYNC
// turn_of waits until nobody else publishes. Cancellation would have a message sent to nobody, or out of order.
std::expected<Mutex::Guard, Error> turn_of(Mutex& turn) noexcept {
  if (auto held = turn.try_lock()) return std::move(*held);
  const Shield shield(Deadline::never());
  return turn.lock();
}
#endif

// A topic is charged with its place in the chains.
constexpr std::size_t kTopicBytes = sizeof(Topic) + sizeof(std::uint32_t);

}  // namespace

// chain_held is where the topics begin whose names have the sum of this one.
std::uint32_t& SocketTable::chain_held(std::string_view name) noexcept {
  return chains_[sum_of(name) & (chain_count_ - 1)];
}

std::uint32_t SocketTable::find_held(std::string_view name) noexcept {
  for (std::uint32_t at = chain_held(name); at != 0; at = topics_[at - 1].next) {
    if (topics_[at - 1].name() == name) return at - 1;
  }
  return kNone;
}

// find_or_make_held returns kNone where there is no room for another topic.
std::uint32_t SocketTable::find_or_make_held(std::string_view name) noexcept {
  std::uint32_t number = find_held(name);
  if (number != kNone) return number;
  if (free_topic_ != kNone) {
    number = free_topic_;
    free_topic_ = topics_[number].next;
  } else if (used_topics_ < options_.max_subscriptions) {
    number = used_topics_++;
    ::new (&topics_[number]) Topic;
  } else {
    return kNone;
  }
  Topic& topic = topics_[number];
  topic.first = kNone;
  topic.name_bytes = static_cast<std::uint8_t>(name.size());
  name.copy(topic.text, name.size());
  std::uint32_t& chain = chain_held(name);
  topic.next = chain;
  chain = number + 1;
  return number;
}

// give_unused_held frees a topic without subscribers that is not being published to, and returns what is to be refunded.
std::size_t SocketTable::give_unused_held(Topic& topic) noexcept {
  if (topic.first != kNone || topic.publishers != 0) return 0;
  const auto number = static_cast<std::uint32_t>(&topic - topics_);
  std::uint32_t* link = &chain_held(topic.name());
  while (*link != number + 1) link = &topics_[*link - 1].next;
  *link = topic.next;
  topic.next = free_topic_;
  free_topic_ = number;
  return kTopicBytes;
}

std::expected<void, Error> SocketTable::subscribe(SocketRecord& record, std::string_view name) noexcept {
  if (!record.open) return std::unexpected(Error{ErrorCode::closed});
  if (name.size() > Topic::kMostName) return std::unexpected(Error{ErrorCode::limit});
  // Charging may close other sockets, which takes the lock.
  if (!Pressure::charge(account::connections, sizeof(Subscription) + kTopicBytes)) {
    return std::unexpected(Error{ErrorCode::no_memory});
  }
  std::size_t refund = sizeof(Subscription) + kTopicBytes;
  bool subscribed = true;
  {
    const Locked locked(topics_lock_);
    const std::uint32_t found = find_held(name);
    std::uint32_t at = found != kNone ? record.subscription : kNone;
    while (at != kNone && nodes_[at].topic != found) at = nodes_[at].next_of_socket;
    const bool has_node = free_node_ != kNone || used_nodes_ < options_.max_subscriptions;
    const std::uint32_t topic = at == kNone && has_node ? find_or_make_held(name) : kNone;
    if (topic != kNone) {
      const std::uint32_t number = free_node_ != kNone ? free_node_ : used_nodes_++;
      if (number == free_node_) free_node_ = nodes_[number].next_of_socket;
      const std::uint32_t first = topics_[topic].first;
      nodes_[number] = {topic, number_of(record), record.subscription, kNone, first};
      if (first != kNone) nodes_[first].previous = number;
      topics_[topic].first = record.subscription = number;
      ++topics_[topic].subscribers;
      refund = found != kNone ? kTopicBytes : 0;
    } else {
      subscribed = at != kNone;
    }
  }
  account::connections.refund(refund);
  if (!subscribed) return std::unexpected(Error{ErrorCode::limit});
  return {};
}

// leave_held ends the subscription that `link`, of its socket's chain, leads to, and returns what is to be refunded.
std::size_t SocketTable::leave_held(std::uint32_t& link) noexcept {
  const std::uint32_t number = link;
  Subscription& node = nodes_[number];
  Topic& topic = topics_[node.topic];
  link = node.next_of_socket;
  (node.previous != kNone ? nodes_[node.previous].next : topic.first) = node.next;
  if (node.next != kNone) nodes_[node.next].previous = node.previous;
  for (Topic::Cursor* each = topic.cursors; each != nullptr; each = each->next) {
    if (each->at == number) each->at = node.next;
  }
  --topic.subscribers;
  node.next_of_socket = free_node_;
  free_node_ = number;
  return sizeof(Subscription) + give_unused_held(topic);
}

void SocketTable::unsubscribe(SocketRecord& record, std::string_view name) noexcept {
  std::size_t refund = 0;
  {
    const Locked locked(topics_lock_);
    const std::uint32_t topic = find_held(name);
    if (topic == kNone) return;
    std::uint32_t* link = &record.subscription;
    while (*link != kNone && nodes_[*link].topic != topic) link = &nodes_[*link].next_of_socket;
    if (*link != kNone) refund = leave_held(*link);
  }
  account::connections.refund(refund);
}

void SocketTable::unsubscribe_all(SocketRecord& record) noexcept {
  for (;;) {
    std::size_t refund;
    {
      const Locked locked(topics_lock_);
      if (record.subscription == kNone) return;
      refund = leave_held(record.subscription);
    }
    account::connections.refund(refund);
  }
}

std::size_t SocketTable::subscribers(std::string_view name) noexcept {
  const Locked locked(topics_lock_);
  const std::uint32_t topic = find_held(name);
  return topic != kNone ? topics_[topic].subscribers : 0;
}

Published SocketTable::publish(std::string_view name, std::string_view payload, bool text) noexcept {
  struct To {
    std::uint32_t socket, generation;
  };
  constexpr std::size_t kBatch = 32;
  Published published;
  if (text && !is_utf8(payload)) return published;
  Topic* topic;
  {
    const Locked locked(topics_lock_);
    const std::uint32_t number = find_held(name);
    if (number == kNone) return published;
    topic = &topics_[number];
    ++topic->publishers;
  }
  char memory[kMostFrameHeader];
  const std::string_view head =
      write_frame_header({.opcode = text ? Opcode::text : Opcode::binary, .payload_bytes = payload.size()}, memory);
  iovec parts[] = {{const_cast<char*>(head.data()), head.size()}, {const_cast<char*>(payload.data()), payload.size()}};
  std::size_t count = payload.empty() ? 1 : 2;
  // A small message is made one piece, which the kernel takes a little quicker.
  Buffer whole;
  if (count == 2 && head.size() + payload.size() <= Buffer::kLeast) {
    if (auto taken = Buffer::take(Buffer::kLeast)) {
      whole = std::move(*taken);
      memcpy(whole.data(), head.data(), head.size());
      memcpy(whole.data() + head.size(), payload.data(), payload.size());
      parts[0] = {whole.data(), head.size() + payload.size()};
      count = 1;
    }
  }
  std::size_t refund;
  {
#if !COIR_NO_ASYNC
    const auto turn = turn_of(topic->turn);
#endif
    Topic::Cursor cursor;
    {
      const Locked locked(topics_lock_);
      cursor = {.at = topic->first, .next = topic->cursors};
      topic->cursors = &cursor;
    }
    Slice slice;
    for (bool over = false; !over;) {
      To batch[kBatch];
      std::size_t found = 0;
      {
        const Locked locked(topics_lock_);
        for (; found < kBatch && cursor.at != kNone; cursor.at = nodes_[cursor.at].next) {
          const std::uint32_t socket = nodes_[cursor.at].socket;
          batch[found++] = {socket, record_at(socket).generation.load(std::memory_order_relaxed)};
        }
        over = cursor.at == kNone;
        if (over) {
          Topic::Cursor** link = &topic->cursors;
          while (*link != &cursor) link = &(*link)->next;
          *link = cursor.next;
        }
      }
      for (std::size_t at = 0; at < found; ++at) {
        const auto out = put_published(batch[at].socket, batch[at].generation, std::span(parts, count));
        if (out) {
          ++published.sent;
        } else if (out.error() != ErrorCode::closed) {
          ++published.dropped;
        }
      }
      // To send to thousands takes tens of milliseconds. Nothing is held here but the turn.
      if (!over) slice.go_on();
    }
  }
  {
    const Locked locked(topics_lock_);
    --topic->publishers;
    refund = give_unused_held(*topic);
  }
  account::connections.refund(refund);
  return published;
}

}  // namespace coir::http
