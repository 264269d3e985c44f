#pragma once

#include <coir/error.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string_view>

#include "base/buffer_pool.h"
#include "mqtt/packet.h"

namespace coir::mqtt {

// MessageQueue holds what was published until it is sent, and of QoS 1 until it is acknowledged, the oldest first, in
// one buffer of a fixed size:
//
//        front               next                 end
//   .....|sent, not answered |not sent yet        |.....
//
// A message keeps the packet id that it was given when it was queued, on every connection. A user of the queue holds
// the client's mutex.
class MessageQueue {
 public:
  // Errors: no_memory, limit (`bytes` is over Buffer::kMost).
  [[nodiscard]] static std::expected<MessageQueue, Error> create(std::size_t bytes, std::size_t most_messages) noexcept;

  MessageQueue() noexcept = default;

  // can_hold tells whether a message fits into the queue when it is empty; has_room whether it fits now.
  bool can_hold(const PublishFields& message) const noexcept { return entry_bytes(message) <= limit_; }
  bool has_room(const PublishFields& message) const noexcept {
    return messages_ < most_ && entry_bytes(message) <= limit_ - used_;
  }
  // push queues a message for which there is room.
  void push(const PublishFields& message) noexcept;
  // fresh_id returns an id that no queued message has, for the next message of QoS 1.
  std::uint16_t fresh_id() noexcept;

  // next returns the message to be sent next, if there is one and, of QoS 1, fewer than `in_flight` are not answered.
  // Its views are valid until the queue is changed. took says that it is about to be sent: of QoS 0 it is then gone.
  bool next(PublishFields& message, std::size_t in_flight) noexcept;
  void took() noexcept;

  // acknowledge removes the message of that id; false: none was sent under it.
  bool acknowledge(std::uint16_t id) noexcept;
  // drop_oldest removes the oldest message, answered or not. Returns its id, 0 of QoS 0. There is one.
  std::uint16_t drop_oldest() noexcept;
  // restart has all that is not answered sent again, as duplicates.
  void restart() noexcept;
  // mark_sent is for what an earlier run has left: it may have been sent.
  void mark_sent() noexcept;

  // each calls `use` with every message of QoS 1, the oldest first.
  template <class F>
  void each(F use) const noexcept {
    for (std::size_t at = front_; at < end_;) {
      const Entry entry = entry_at(at);
      if (entry.qos != 0 && !entry.done) use(fields_of(at, entry));
      at += entry.size;
    }
  }

  bool empty() const noexcept { return messages_ == 0; }
  std::size_t messages() const noexcept { return messages_; }
  std::size_t in_flight() const noexcept { return in_flight_; }
  bool is_all_sent() const noexcept { return next_ == end_; }

 private:
  struct Entry {
    std::uint32_t size;
    std::uint16_t topic;
    std::uint16_t id;
    std::uint8_t qos;
    bool retained;
    bool sent;
    bool done;
  };
  static std::size_t entry_bytes(const PublishFields& message) noexcept {
    return sizeof(Entry) + message.topic.size() + message.payload.size();
  }
  Entry entry_at(std::size_t at) const noexcept;
  void set_entry(std::size_t at, const Entry& entry) noexcept;
  PublishFields fields_of(std::size_t at, const Entry& entry) const noexcept;
  void finish(std::size_t at, Entry entry) noexcept;
  void pop_done() noexcept;
  bool holds(std::uint16_t id) const noexcept;

  Buffer buffer_;
  std::size_t limit_ = 0, most_ = 0;
  std::size_t front_ = 0, next_ = 0, end_ = 0;
  std::size_t used_ = 0;      // bytes of what is not done
  std::size_t messages_ = 0;  // that are not done
  std::size_t in_flight_ = 0;
  std::uint16_t last_id_ = 0;
  bool wraps_ = false;  // the ids have begun anew: one may still be taken
};

// Ids up to this one are messages'; the one above is the subscription's.
inline constexpr std::uint16_t kLastMessageId = 65'534;

}  // namespace coir::mqtt
