#include "mqtt/message_queue.h"

#include <string.h>

#include <algorithm>
#include <utility>

namespace coir::mqtt {

std::expected<MessageQueue, Error> MessageQueue::create(std::size_t bytes, std::size_t most_messages) noexcept {
  auto buffer = Buffer::take(bytes);
  if (!buffer) return std::unexpected(buffer.error());
  MessageQueue made;
  made.buffer_ = std::move(*buffer);
  made.limit_ = bytes;
  made.most_ = std::min<std::size_t>(most_messages, kLastMessageId);
  return made;
}

MessageQueue::Entry MessageQueue::entry_at(std::size_t at) const noexcept {
  Entry entry;
  memcpy(&entry, buffer_.data() + at, sizeof entry);
  return entry;
}

void MessageQueue::set_entry(std::size_t at, const Entry& entry) noexcept {
  memcpy(buffer_.data() + at, &entry, sizeof entry);
}

PublishFields MessageQueue::fields_of(std::size_t at, const Entry& entry) const noexcept {
  const std::string_view text(buffer_.data() + at + sizeof entry, entry.size - sizeof entry);
  return {.topic = text.substr(0, entry.topic),
          .payload = text.substr(entry.topic),
          .id = entry.id,
          .qos = entry.qos,
          .retained = entry.retained,
          .duplicate = entry.sent};
}

// push closes the holes in the middle, too, when the end of the buffer is reached: answers come in any order.
void MessageQueue::push(const PublishFields& message) noexcept {
  const std::size_t size = entry_bytes(message);
  if (buffer_.size() - end_ < size) {
    std::size_t to = 0, next = 0;
    for (std::size_t at = front_; at < end_;) {
      const Entry entry = entry_at(at);
      if (at == next_) next = to;
      if (!entry.done) {
        memmove(buffer_.data() + to, buffer_.data() + at, entry.size);
        to += entry.size;
      }
      at += entry.size;
    }
    next_ = next_ == end_ ? to : next;
    front_ = 0;
    end_ = to;
  }
  set_entry(end_, {.size = static_cast<std::uint32_t>(size),
                   .topic = static_cast<std::uint16_t>(message.topic.size()),
                   .id = message.id,
                   .qos = message.qos,
                   .retained = message.retained,
                   .sent = message.duplicate,
                   .done = false});
  char* const text = buffer_.data() + end_ + sizeof(Entry);
  memcpy(text, message.topic.data(), message.topic.size());
  if (!message.payload.empty()) memcpy(text + message.topic.size(), message.payload.data(), message.payload.size());
  end_ += size;
  used_ += size;
  ++messages_;
  if (message.id > last_id_) last_id_ = message.id;
}

bool MessageQueue::holds(std::uint16_t id) const noexcept {
  for (std::size_t at = front_; at < end_;) {
    const Entry entry = entry_at(at);
    if (entry.id == id && !entry.done) return true;
    at += entry.size;
  }
  return false;
}

std::uint16_t MessageQueue::fresh_id() noexcept {
  wraps_ = wraps_ || last_id_ >= kLastMessageId;
  do {
    last_id_ = last_id_ >= kLastMessageId ? 1 : static_cast<std::uint16_t>(last_id_ + 1);
  } while (wraps_ && holds(last_id_));
  return last_id_;
}

bool MessageQueue::next(PublishFields& message, std::size_t in_flight) noexcept {
  while (next_ < end_) {
    const Entry entry = entry_at(next_);
    if (!entry.done) {
      if (entry.qos != 0 && in_flight_ >= in_flight) return false;
      message = fields_of(next_, entry);
      return true;
    }
    next_ += entry.size;
  }
  return false;
}

void MessageQueue::took() noexcept {
  const std::size_t at = next_;
  Entry entry = entry_at(at);
  next_ += entry.size;
  entry.sent = true;
  if (entry.qos != 0) {
    ++in_flight_;
    set_entry(at, entry);
  } else {
    finish(at, entry);
  }
}

void MessageQueue::finish(std::size_t at, Entry entry) noexcept {
  entry.done = true;
  set_entry(at, entry);
  used_ -= entry.size;
  --messages_;
  pop_done();
}

void MessageQueue::pop_done() noexcept {
  while (front_ < end_) {
    const Entry entry = entry_at(front_);
    if (!entry.done) return;
    front_ += entry.size;
    next_ = std::max(next_, front_);
  }
  front_ = next_ = end_ = 0;
}

bool MessageQueue::acknowledge(std::uint16_t id) noexcept {
  for (std::size_t at = front_; at < next_;) {
    const Entry entry = entry_at(at);
    if (entry.id == id && entry.qos != 0 && !entry.done) {
      --in_flight_;
      finish(at, entry);
      return true;
    }
    at += entry.size;
  }
  return false;
}

std::uint16_t MessageQueue::drop_oldest() noexcept {
  // pop_done leaves one in front that is not done.
  const Entry entry = entry_at(front_);
  if (front_ < next_) --in_flight_;
  const std::uint16_t id = entry.id;
  finish(front_, entry);
  return entry.qos != 0 ? id : 0;
}

void MessageQueue::restart() noexcept {
  next_ = front_;
  in_flight_ = 0;
}

void MessageQueue::mark_sent() noexcept {
  for (std::size_t at = front_; at < end_;) {
    Entry entry = entry_at(at);
    entry.sent = true;
    set_entry(at, entry);
    at += entry.size;
  }
}

}  // namespace coir::mqtt
