#pragma once

// Values from fibers and threads to others.
//
//   Channel<std::string> jobs({.capacity = 64});
//   if (auto sent = jobs.send("first", deadline); !sent) return complain(sent.error());   // waits while it is full
//   jobs.close();
//   while (auto job = jobs.receive()) show(*job);                                         // until closed and drained

#include <coir/port/needs_fibers.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <span>
#include <type_traits>
#include <utility>

#include <coir/deadline.h>
#include <coir/detail/construct.h>
#include <coir/detail/wait_list.h>
#include <coir/error.h>
#include <coir/ledger.h>
#include <coir/spinlock.h>

namespace coir {

// kUnbounded is the capacity of a channel whose senders never wait.
inline constexpr std::size_t kUnbounded = SIZE_MAX;

// ChannelOptions: `capacity` is how many values may be buffered between sender and receiver. 0 makes a rendezvous: send
// returns when somebody has received. Buffered values are charged to `account`.
struct ChannelOptions {
  std::size_t capacity = 0;
  Account* account = &account::channels;
};

namespace detail {

// Element is how values of one type are handled by code that does not know the type.
struct Element {
  std::size_t bytes;
  void (*move)(void* to, void* from) noexcept;      // constructs `to`, leaves `from` moved-from
  void (*relocate)(void* to, void* from) noexcept;  // constructs `to`, destroys `from`
  void (*destroy)(void* at) noexcept;
  // replace puts the value at `from`, which it destroys, in the place of the one at `into`, and calls between(of) before
  // it destroys that one: a destructor is foreign code, and may use the channel.
  void (*replace)(void* into, void* from, void (*between)(void* of) noexcept, void* of) noexcept;
  bool trivial;  // to destroy one is nothing
};

template <class T>
inline constexpr Element kElement{
    sizeof(T),
    [](void* to, void* from) noexcept { std::construct_at(static_cast<T*>(to), std::move(*static_cast<T*>(from))); },
    [](void* to, void* from) noexcept {
      std::construct_at(static_cast<T*>(to), std::move(*static_cast<T*>(from)));
      std::destroy_at(static_cast<T*>(from));
    },
    [](void* at) noexcept { std::destroy_at(static_cast<T*>(at)); },
    [](void* into, void* from, void (*between)(void*) noexcept, void* of) noexcept {
      [[maybe_unused]] T before(std::move(*static_cast<T*>(into)));
      std::destroy_at(static_cast<T*>(into));
      std::construct_at(static_cast<T*>(into), std::move(*static_cast<T*>(from)));
      std::destroy_at(static_cast<T*>(from));
      between(of);
    },
    std::is_trivially_destructible_v<T>};

// ChannelCore is a channel of values of any type.
class ChannelCore {
 public:
  ChannelCore(const Element& element, const ChannelOptions& options) noexcept;
  ~ChannelCore();
  ChannelCore(const ChannelCore&) = delete;
  ChannelCore& operator=(const ChannelCore&) = delete;

  std::expected<void, Error> send(void* value, Deadline deadline) noexcept;
  // receive constructs the value at `into`, and where it is to replace one, destroys that before.
  std::expected<void, Error> receive(void* into, Deadline deadline, bool replaces = false) noexcept;
  // send_many and receive_up_to are both for `count` values that lie side by side.
  std::expected<std::size_t, Error> send_many(void* values, std::size_t count, Deadline deadline) noexcept;
  std::expected<std::size_t, Error> receive_up_to(void* into, std::size_t count, Deadline deadline) noexcept;
  void close() noexcept;

  std::size_t size() const noexcept;
  bool closed() const noexcept;

 private:
  friend struct Selection;

  struct Segment;
  enum class Step : std::uint8_t { done, closed, full_or_empty, no_memory };

  // Each call tries one of these first, with lock_ held. They release lock_ unless the channel is full or empty.
  Step try_send(void* value) noexcept;
  Step try_receive(void* into, bool replaces) noexcept;
  // The calls for many try these with the lock taken once. Return how many of `count` go or come without a wait.
  std::size_t try_send_many(std::byte* values, std::size_t count) noexcept;
  std::size_t try_receive_many(std::byte* into, std::size_t count) noexcept;
  void put(void* value) noexcept;
  // Whether it is worth trying. Under lock_.
  bool may_send() const noexcept;
  bool may_receive() const noexcept;

  bool has_room() noexcept;
  std::expected<void, Error> grow() noexcept;
  void* back() noexcept;
  void* front() noexcept;
  Segment* drop_front() noexcept;
  void leave_front() noexcept;
  Segment* allocate() noexcept;
  void free(Segment* segment) noexcept;
  void place(void* into, bool replaces, void* from, void (*how)(void*, void*) noexcept) noexcept;

  // Values lie in [head_ of the first segment, tail_ of the last). A bounded channel has one segment, which is a ring;
  // an unbounded one as many as it takes, and one spare. All of it is guarded by lock_.
  mutable Spinlock lock_;
  bool closed_ = false;
  std::uint32_t per_segment_;
  std::uint32_t head_ = 0, tail_ = 0;
  const Element* element_;
  std::size_t capacity_;
  std::size_t count_ = 0;
  IntrusiveQueue<Segment> segments_;
  Segment* spare_ = nullptr;
  WaitList senders_;    // only while count_ is capacity_
  WaitList receivers_;  // only while count_ is 0 and nobody waits to send
  Account* account_;
};

// Space is room for a value that its user constructs and destroys.
template <class T>
union Space {
  T value;
  Space() noexcept {}
  ~Space() {}
};

template <class T>
std::expected<T, Error> receive_from(ChannelCore& channel, Deadline deadline) noexcept {
  Space<T> space;
  if (auto received = channel.receive(std::addressof(space.value), deadline); !received) {
    return std::unexpected(received.error());
  }
  std::expected<T, Error> value(std::move(space.value));
  std::destroy_at(std::addressof(space.value));
  return value;
}

}  // namespace detail

// Channel carries values from fibers and threads to fibers and threads, in the order in which they were sent; each is
// received once. Waiters are served in the order in which they came.
//
// send() happens-before the receive() that gets the value; at a rendezvous, receive() also happens-before the return of
// send(). T's move neither parks nor calls the channel, for the channel is locked meanwhile.
//
// Cost: a few tens of nanoseconds, no system call. A bounded channel allocates its buffer with the first value that no
// receiver waits for, an unbounded one in pieces of about half a kilobyte, which it frees again.
template <class T>
class Channel {
  static_assert(std::is_nothrow_destructible_v<T> && std::is_move_constructible_v<T>);
  static_assert(alignof(T) <= alignof(std::max_align_t), "the buffer is aligned as malloc aligns");

 public:
  explicit Channel(const ChannelOptions& options = {}) noexcept : core_(detail::kElement<T>, options) {}
  // Destroying a channel that somebody waits on ends the process with a line that says so. Values that were not
  // received are destroyed.

  // send hands `value` over, and waits for room, or at a rendezvous for a receiver. On an error the value is where it
  // was. Deadline::now() tries once. Fiber or thread.
  // Errors: timed_out, cancelled, closed, no_memory (the account or the system refused a buffer), unsupported.
  [[nodiscard]] std::expected<void, Error> send(T&& value, Deadline deadline = Deadline::never()) noexcept {
    return core_.send(std::addressof(value), deadline);
  }
  [[nodiscard]] std::expected<void, Error> send(const T& value, Deadline deadline = Deadline::never()) noexcept
    requires std::is_copy_constructible_v<T>
  {
    T copy(value);
    return core_.send(std::addressof(copy), deadline);
  }

  // receive waits for a value and returns it. Values sent before a close are still received. Fiber or thread. Errors:
  // timed_out, cancelled, closed (and drained), unsupported.
  [[nodiscard]] std::expected<T, Error> receive(Deadline deadline = Deadline::never()) noexcept {
    return detail::receive_from<T>(core_, deadline);
  }

  // send_many sends the values of `from` in order, and waits until the last has gone; for many small ones that costs a
  // fraction of a send each. Returns how many it has sent, which are moved-from: all, unless the channel was closed, or
  // the wait for the next ended. Fiber or thread. Errors, if it has sent none: those of send.
  [[nodiscard]] std::expected<std::size_t, Error> send_many(std::span<T> from,
                                                            Deadline deadline = Deadline::never()) noexcept {
    return core_.send_many(from.data(), from.size(), deadline);
  }

  // receive_up_to waits for a value, and takes with it what else is there, as far as `into` has room. Returns how many
  // values of `into` were replaced: at least one, unless it is empty. Fiber or thread. Errors: those of receive.
  [[nodiscard]] std::expected<std::size_t, Error> receive_up_to(std::span<T> into,
                                                                Deadline deadline = Deadline::never()) noexcept {
    return core_.receive_up_to(into.data(), into.size(), deadline);
  }

  // close ends sending: whoever waits to send, or will, gets `closed`; receivers get it once they have drained the
  // channel. Idempotent; never parks; any side may.
  void close() noexcept { core_.close(); }

  // size is how many values lie in it at this moment; closed tells whether close() was called.
  std::size_t size() const noexcept { return core_.size(); }
  bool closed() const noexcept { return core_.closed(); }

 private:
  friend class Case;

  detail::ChannelCore core_;
};

}  // namespace coir
