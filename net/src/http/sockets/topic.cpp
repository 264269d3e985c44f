#include <coir/http/topic.h>

#include <coir/detail/fatal.h>
#include <coir/http/accounts.h>
#include <coir/pressure.h>
#include <coir/utf8.h>
#include <string.h>

#include "http/sockets/socket_table.h"
#include "socket/turn.h"

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

}  // namespace

Topic::~Topic() {
  if (subscribers() != 0) coir::detail::fatal("a topic is destroyed while sockets are subscribed to it");
}

std::expected<void, Error> SocketTable::subscribe(SocketRecord& record, Topic& topic) noexcept {
  {
    const Locked locked(nodes_lock_);
    for (std::uint32_t at = record.subscription; at != Topic::kNone; at = nodes_[at].next_of_socket) {
      if (nodes_[at].topic == &topic) return {};
    }
  }
  if (!record.open) return std::unexpected(Error{ErrorCode::closed});
  if (!Pressure::charge(account::connections, sizeof(Subscription)))
    return std::unexpected(Error{ErrorCode::no_memory});
  std::uint32_t number = Topic::kNone;
  {
    const Locked locked(nodes_lock_);
    if (free_node_ != Topic::kNone) {
      number = free_node_;
      free_node_ = nodes_[number].next_of_socket;
    } else if (used_nodes_ < options_.max_subscriptions) {
      number = used_nodes_++;
    }
    if (number != Topic::kNone) {
      nodes_[number] = {.topic = &topic, .socket = number_of(record), .next_of_socket = record.subscription};
      record.subscription = number;
    }
  }
  ErrorCode error{};
  if (number == Topic::kNone) {
    account::connections.refund(sizeof(Subscription));
    return std::unexpected(Error{ErrorCode::limit});
  }
  {
    const Locked locked(topic.lock_);
    if (topic.table_ != nullptr && topic.table_ != this) {
      error = ErrorCode::invalid;
    } else {
      topic.table_ = this;
      nodes_[number].previous = Topic::kNone;
      nodes_[number].next = topic.first_;
      if (topic.first_ != Topic::kNone) nodes_[topic.first_].previous = number;
      topic.first_ = number;
      topic.count_.fetch_add(1, std::memory_order_relaxed);
    }
  }
  if (error == ErrorCode{}) return {};
  const Locked locked(nodes_lock_);
  record.subscription = nodes_[number].next_of_socket;
  nodes_[number].next_of_socket = free_node_;
  free_node_ = number;
  account::connections.refund(sizeof(Subscription));
  return std::unexpected(Error{error});
}

// unlink takes a subscription out of its topic.
void SocketTable::unlink(Topic& topic, std::uint32_t number) noexcept {
  const Locked locked(topic.lock_);
  const Subscription& node = nodes_[number];
  (node.previous != Topic::kNone ? nodes_[node.previous].next : topic.first_) = node.next;
  if (node.next != Topic::kNone) nodes_[node.next].previous = node.previous;
  for (Topic::Cursor* each = topic.cursors_; each != nullptr; each = each->next) {
    if (each->at == number) each->at = node.next;
  }
  // Behind the last the topic may be of other sockets.
  if (topic.count_.fetch_sub(1, std::memory_order_relaxed) == 1 && topic.cursors_ == nullptr) topic.table_ = nullptr;
}

void SocketTable::unsubscribe(SocketRecord& record, Topic& topic) noexcept {
  std::uint32_t number = Topic::kNone;
  {
    const Locked locked(nodes_lock_);
    std::uint32_t* link = &record.subscription;
    while (*link != Topic::kNone && nodes_[*link].topic != &topic) link = &nodes_[*link].next_of_socket;
    number = *link;
    if (number == Topic::kNone) return;
    *link = nodes_[number].next_of_socket;
  }
  unlink(topic, number);
  account::connections.refund(sizeof(Subscription));
  const Locked locked(nodes_lock_);
  nodes_[number].next_of_socket = free_node_;
  free_node_ = number;
}

void SocketTable::unsubscribe_all(SocketRecord& record) noexcept {
  for (;;) {
    Topic* topic;
    {
      const Locked locked(nodes_lock_);
      if (record.subscription == Topic::kNone) return;
      topic = nodes_[record.subscription].topic;
    }
    unsubscribe(record, *topic);
  }
}

Published SocketTable::publish(Topic& topic, Opcode opcode, std::string_view payload) noexcept {
  struct To {
    std::uint32_t socket, generation;
  };
  constexpr std::size_t kBatch = 32;
  char memory[kMostFrameHeader];
  const std::string_view head = write_frame_header({.opcode = opcode, .payload_bytes = payload.size()}, memory);
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
#if !COIR_NO_ASYNC
  const auto turn = turn_of(topic.turn_);
#endif
  Published published;
  SocketTable* table;
  Topic::Cursor cursor;
  {
    const Locked locked(topic.lock_);
    if (topic.first_ == Topic::kNone) return published;
    table = topic.table_;
    cursor = {.at = topic.first_, .next = topic.cursors_};
    topic.cursors_ = &cursor;
  }
  Slice slice;
  for (bool over = false; !over;) {
    To batch[kBatch];
    std::size_t found = 0;
    {
      const Locked locked(topic.lock_);
      for (; found < kBatch && cursor.at != Topic::kNone; cursor.at = table->nodes_[cursor.at].next) {
        const std::uint32_t socket = table->nodes_[cursor.at].socket;
        batch[found++] = {socket, table->record_at(socket).generation.load(std::memory_order_relaxed)};
      }
      over = cursor.at == Topic::kNone;
      if (over) {
        Topic::Cursor** link = &topic.cursors_;
        while (*link != &cursor) link = &(*link)->next;
        *link = cursor.next;
        if (topic.first_ == Topic::kNone && topic.cursors_ == nullptr) topic.table_ = nullptr;
      }
    }
    for (std::size_t at = 0; at < found; ++at) {
      const auto out =
          table->put(batch[at].socket, batch[at].generation, std::span(parts, count), topic.slow_ == Slow::drop);
      if (out) {
        ++published.sent;
      } else if (out.error() != ErrorCode::closed) {
        ++(topic.slow_ == Slow::drop ? published.dropped : published.skipped);
      }
    }
    // To send to thousands takes tens of milliseconds. Nothing is held here but the turn.
    if (!over) slice.go_on();
  }
  return published;
}

Published Topic::publish_text(std::string_view text) noexcept {
  return is_utf8(text) ? SocketTable::publish(*this, Opcode::text, text) : Published();
}

Published Topic::publish_binary(std::string_view bytes) noexcept {
  return SocketTable::publish(*this, Opcode::binary, bytes);
}

}  // namespace coir::http
