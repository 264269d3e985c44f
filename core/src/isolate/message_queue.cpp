#include "isolate/message_queue.h"

#include <coir/budget.h>

#include <new>

namespace coir::detail {

namespace {

bool stopped(const SharedAtomic<bool>* stop) noexcept {
  return stop != nullptr && stop->load(std::memory_order_relaxed);  // the lock orders it
}

}  // namespace

// A receiver makes room, and wakes one sender, even if the room is too small for its message: that sender stands in
// line again. Before the ring is empty somebody takes the next message, and in an empty ring each has room.
std::expected<void, Error> MessageQueue::send(const MessageType& type, const void* message, Deadline deadline,
                                              const SharedAtomic<bool>* stop) noexcept {
  spend_budget();
  const std::size_t bytes = type.bytes(message);
  if (bytes > ring_.size() || room_for(bytes) > ring_.size()) return std::unexpected(Error{ErrorCode::limit});
  const InterRunGuard hold(lock_);
  for (;;) {
    if (closed_) return std::unexpected(Error{ErrorCode::closed});
    if (place(room_for(bytes))) break;
    if (stopped(stop)) return std::unexpected(Error{ErrorCode::cancelled});
    if (auto waited = senders_.wait(lock_, WaitKind::send, deadline); !waited) return waited;
  }
  Header* const header = new (at(tail_)) Header{&type, bytes};
  type.write(message, {reinterpret_cast<std::byte*>(header + 1), bytes});
  tail_ += room_for(bytes);
  ++records_;
  receivers_.wake_one();
  return {};
}

std::expected<void, Error> MessageQueue::receive(const MessageType& type, void* into, Deadline deadline,
                                                 const SharedAtomic<bool>* stop) noexcept {
  spend_budget();
  const InterRunGuard hold(lock_);
  while (records_ == 0) {
    if (stopped(stop)) return std::unexpected(Error{ErrorCode::cancelled});
    if (closed_) return std::unexpected(Error{ErrorCode::closed});
    if (auto waited = receivers_.wait(lock_, WaitKind::receive, deadline); !waited) return waited;
  }
  const Header& header = *front();
  if (header.type != &type) {
    receivers_.wake_one();  // one who waits for this type may have been passed over
    return std::unexpected(Error{ErrorCode::invalid});
  }
  auto read = type.read(into, {reinterpret_cast<const std::byte*>(&header + 1), header.bytes});
  drop_front();
  senders_.wake_one();
  return read;
}

std::expected<void, Error> MessageQueue::await_close(Deadline deadline, Shielded shielded) noexcept {
  spend_budget();
  const InterRunGuard hold(lock_);
  while (!closed_) {
    if (auto waited = receivers_.wait(lock_, WaitKind::receive, deadline, shielded); !waited) return waited;
  }
  return {};
}

void MessageQueue::close() noexcept {
  closed_ = true;
  wake_waiters();
}

void MessageQueue::wake_waiters() noexcept {
  senders_.wake_all();
  receivers_.wake_all();
}

// place makes sure that `room` bytes lie free behind tail_.
bool MessageQueue::place(std::size_t room) noexcept {
  if (records_ == 0) head_ = tail_ = 0;
  if (records_ != 0 && tail_ <= head_) return head_ - tail_ >= room;
  if (ring_.size() - tail_ >= room) return true;
  if (head_ < room) return false;
  if (tail_ != ring_.size()) new (at(tail_)) Header{nullptr, 0};
  tail_ = 0;
  return true;
}

MessageQueue::Header* MessageQueue::front() noexcept {
  if (head_ == ring_.size() || at(head_)->type == nullptr) head_ = 0;
  return at(head_);
}

void MessageQueue::drop_front() noexcept {
  head_ += room_for(at(head_)->bytes);
  --records_;
}

}  // namespace coir::detail
