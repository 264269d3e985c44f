#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>

#include <coir/atomic.h>
#include <coir/deadline.h>
#include <coir/error.h>
#include <coir/message.h>

#include "wait/inter_run_queue.h"

namespace coir::detail {

// MessageQueue is a ring of bytes that messages of any types go through in order, between runs and plain threads. It
// owns nothing: not the ring, nor the lock, which it may share with what is to change together with it.
//
//   ring   | header | message ... | header | message ... |  free  |
//
// A record lies in one piece: where the end of the ring is too short for it, a mark sends the reader to the beginning.
class MessageQueue {
 public:
  // room_for is how many bytes of ring one message of `bytes` takes.
  static constexpr std::size_t room_for(std::size_t bytes) noexcept {
    return sizeof(Header) + (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }

  // The ring's size is a multiple of kAlignment.
  static constexpr std::size_t kAlignment = 16;
  MessageQueue(InterRunLock& lock, std::span<std::byte> ring) noexcept : lock_(lock), ring_(ring) {}
  MessageQueue(const MessageQueue&) = delete;
  MessageQueue& operator=(const MessageQueue&) = delete;

  // send waits for room. `stop`, where given, ends the wait once it is set and the queue is roused.
  // Errors: closed, limit (no ring of this size will ever have room), timed_out, cancelled, unsupported.
  std::expected<void, Error> send(const MessageType& type, const void* message, Deadline deadline,
                                  const SharedAtomic<bool>* stop = nullptr) noexcept;

  // receive waits for a message and constructs it at `into`. Errors: closed (and drained), invalid (the next message is
  // of another type, and stays), those of reading it (it is gone), timed_out, cancelled, unsupported.
  std::expected<void, Error> receive(const MessageType& type, void* into, Deadline deadline,
                                     const SharedAtomic<bool>* stop = nullptr) noexcept;

  // await_close waits until the queue is closed. Errors: timed_out, cancelled (neither if shielded), unsupported.
  std::expected<void, Error> await_close(Deadline deadline, Shielded shielded = Shielded::no) noexcept;

  // close, closed and wake_waiters are called under the lock.
  void close() noexcept;
  bool closed() const noexcept { return closed_; }
  void wake_waiters() noexcept;

 private:
  struct alignas(kAlignment) Header {
    const MessageType* type;  // null: go on at the beginning of the ring
    std::size_t bytes;
  };
  static_assert(sizeof(Header) == kAlignment);

  bool place(std::size_t room) noexcept;
  Header* front() noexcept;
  void drop_front() noexcept;
  Header* at(std::size_t offset) noexcept { return reinterpret_cast<Header*>(ring_.data() + offset); }

  InterRunLock& lock_;
  std::span<std::byte> ring_;
  // Records lie in [head_, tail_), or, once they have gone round, in [head_, a mark or the end) and [0, tail_).
  std::size_t head_ = 0, tail_ = 0;
  std::size_t records_ = 0;
  bool closed_ = false;
  InterRunQueue senders_, receivers_;
};

}  // namespace coir::detail
