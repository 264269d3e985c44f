#pragma once

#include <coir/atomic.h>
#include <coir/config.h>
#include <coir/spinlock.h>

#if !COIR_NO_ASYNC
#include <coir/mutex.h>
#endif

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace coir::http {

class SocketTable;

// Slow says what becomes of a subscriber for whom more waits than RestingSocketsOptions::max_unsent allows: its
// connection is dropped, so that it comes back and asks for what it has missed; or it is skipped, and does not learn
// what it has missed.
enum class Slow : std::uint8_t { drop, skip };

// Published counts what became of a message.
struct Published {
  std::size_t sent = 0;     // taken by the kernel, or put in a buffer for the client
  std::size_t skipped = 0;  // not sent to slow clients
  std::size_t dropped = 0;  // slow clients whose connections were closed
};

// Topic is what resting sockets subscribe to. A message is encoded once and handed to the kernel for one socket after
// the other, without a fiber for each; what the kernel does not take waits in a buffer of that socket's, and a fiber
// goes on when it has room.
//
//   Topic news(Slow::skip);
//   socket.subscribe(news);           // in a call of the program's
//   news.publish_text("rain");        // from any fiber
//
// Every subscriber gets the messages in the same order, that in which they were published. A publish gives the worker
// to other fibers from time to time; one that begins meanwhile, on another fiber, waits until the first has gone to all.
// Who subscribes meanwhile gets the messages that are published from then on, and who leaves is not sent the rest. A
// topic outlives its subscribers, and what is being published on it.
class Topic {
 public:
  explicit Topic(Slow slow = Slow::drop) noexcept : slow_(slow) {}
  Topic(const Topic&) = delete;
  Topic& operator=(const Topic&) = delete;
  // With subscribers left the program ends with a line.
  ~Topic();

  // publish_text and publish_binary send a message to every subscriber, without waiting for any. Text has to be UTF-8:
  // what is not is sent to nobody. From a fiber, which may yield, and wait for others that publish on this topic; a
  // cancelled one sends as well. Cost: one system call for each subscriber.
  Published publish_text(std::string_view text) noexcept;
  Published publish_binary(std::string_view bytes) noexcept;

  // subscribers is how many there are; any thread.
  std::size_t subscribers() const noexcept { return count_.load(std::memory_order_relaxed); }

 private:
  friend class SocketTable;
  static constexpr std::uint32_t kNone = UINT32_MAX;

  // Cursor is where a publisher has come to. A subscription that ends moves those that point to it.
  struct Cursor {
    std::uint32_t at;
    Cursor* next;
  };

  const Slow slow_;
#if !COIR_NO_ASYNC
  Mutex turn_;  // held by who publishes
#endif
  Spinlock lock_;  // guards the rest, and the links of the subscriptions to this topic
  SocketTable* table_ = nullptr;
  std::uint32_t first_ = kNone;
  Atomic<std::size_t> count_ = 0;
  Cursor* cursors_ = nullptr;
};

}  // namespace coir::http
