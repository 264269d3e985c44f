#pragma once

// The first of several events.
//
//   Channel<std::string> news;
//   std::string message;
//   for (;;) {
//     auto won = select({Case::receive(news, message), Case::readable(fd), Case::after(30s)}, deadline);
//     if (!won) return complain(won.error());
//     if (won->index == 0) show(message);
//   }

#include <coir/port/needs_fibers.h>

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>

#include <coir/broadcast.h>
#include <coir/cancellation.h>
#include <coir/channel.h>
#include <coir/deadline.h>
#include <coir/detail/construct.h>
#include <coir/detail/descriptor_node.h>
#include <coir/detail/wait_list.h>
#include <coir/error.h>
#include <coir/event.h>
#include <coir/fiber.h>
#include <coir/mutex.h>
#include <coir/semaphore.h>
#include <coir/wait.h>

namespace coir {

// Case is one of the things that a select waits for. The objects that it names outlive the select.
class Case : detail::WaitNode {
 public:
  // receive takes a value from `channel` and puts it in the place of the one in `into`. Ready when there is one, and
  // when the channel is closed and drained: `into` is then left alone.
  template <class T>
  static Case receive(Channel<T>& channel, T& into) noexcept {
    return Case(Kind::receive, &channel.core_, std::addressof(into));
  }

  template <class T>
  static Case receive(Subscription<T>& subscription, T& into) noexcept {
    return Case(Kind::receive, &subscription.channel_, std::addressof(into));
  }

  // send moves `value` into `channel` if this is the case that comes about, and else leaves it alone. Ready when there
  // is room or a receiver, and when the channel is closed: `value` is then left alone, too.
  template <class T>
  static Case send(Channel<T>& channel, T& value) noexcept {
    return Case(Kind::send, &channel.core_, std::addressof(value));
  }

  // readable, writable, urgent and ready are `wait` of coir/wait.h, with its rules: ask after EAGAIN or a short read, and loop.
  static Case readable(int fd) noexcept { return Case(fd, Direction::readable); }
  static Case writable(int fd) noexcept { return Case(fd, Direction::writable); }
  static Case urgent(int fd) noexcept { return Case(fd, Direction::urgent); }
  static Case ready(int fd, Direction direction) noexcept { return Case(fd, direction); }

  // ended is ready when the fiber or task has ended, or the handle is empty. It stays to be joined or awaited, which
  // then does not wait. Any number may wait for it.
  static Case ended(const Fiber& fiber) noexcept { return Case(fiber.control_, fiber.id_); }

  // opened is ready while the event is set.
  static Case opened(Event& event) noexcept { return Case(Kind::event, &event, nullptr); }

  // acquire takes permits if this is the case that comes about: Semaphore::acquire, in the same line.
  static Case acquire(Semaphore& semaphore, std::uint64_t count = 1) noexcept {
    Case one(Kind::semaphore, &semaphore, nullptr);
    one.wanted_ = count;
    return one;
  }

  // lock takes the mutex if this is the case that comes about, and puts the guard in `into`: Mutex::lock, in the same
  // line. If the calling fiber holds it already, the select fails with `deadlock`.
  static Case lock(Mutex& mutex, std::optional<Mutex::Guard>& into) noexcept {
    return Case(Kind::mutex, &mutex, &into);
  }

  // cancelled is ready once the token's source is cancelled; with an empty token, never. The caller's own cancellation
  // ends the select with an error instead.
  static Case cancelled(CancellationToken token) noexcept {
    return token.source_ != nullptr ? Case(Kind::cancellation, token.source_, nullptr) : at(Deadline::never());
  }

  // at and after are ready when their time has come.
  static Case at(Deadline deadline) noexcept { return Case(deadline); }
  static Case after(std::chrono::nanoseconds span) noexcept { return Case(Deadline::after(span)); }

  // otherwise is ready when no other case is: a select with it never waits.
  static Case otherwise() noexcept { return Case(Kind::otherwise, nullptr, nullptr); }

 private:
  friend struct detail::Selection;

  enum class Kind : std::uint8_t {
    send,
    receive,
    event,
    cancellation,
    semaphore,
    mutex,
    descriptor,
    ended,
    timer,
    otherwise
  };

  Case(Kind kind, void* object, void* value) noexcept : kind_(kind), object_(object) { slot = value; }
  Case(int fd, Direction direction) noexcept : kind_(Kind::descriptor), direction_(direction), fd_(fd) {}
  Case(FiberControl* fiber, std::uint64_t id) noexcept : kind_(Kind::ended), object_(fiber), id_(id) {}
  explicit Case(Deadline deadline) noexcept : kind_(Kind::timer), deadline_(deadline) {}

  Kind kind_;
  Direction direction_ = Direction::readable;
  bool shown_ = false;  // to the descriptor or the fiber
  int fd_ = -1;
  std::uint32_t turn_ = 0;        // which case is looked at at this one's place
  std::uint32_t tag_ = 0;         // of the descriptor that had the number when it was shown
  detail::DescriptorNode place_;  // among those that wait for the descriptor
  void* object_ = nullptr;        // the channel, event, source, semaphore, mutex or fiber
  std::uint64_t wanted_ = 0;      // permits
  union {
    std::uint64_t id_ = 0;
    Deadline deadline_;
    Case* next_locked_;  // the case whose lock is taken after this one's
  };
};

// Selected is the case that came about, and whether it did because its channel or descriptor is closed.
struct Selected {
  std::size_t index;
  bool closed;
};

namespace detail {
std::expected<Selected, Error> select_erased(Case* cases, std::size_t count, Deadline deadline) noexcept;
}  // namespace detail

// select waits until one of its cases comes about, and tells which: that one's send or receive is done, none of the
// others is. If several are ready, select chooses one at random; a descriptor, a timer or a fiber gets its turn even if a
// channel is always ready.
//
// Fiber or thread; a thread may name up to 15 descriptors. Errors: timed_out (the deadline; a timer's time is a case),
// cancelled, deadlock (of a mutex), busy (a RestingWait sleeps on that descriptor), no_memory, limit, system,
// unsupported; invalid (a descriptor is negative, or there is nothing to wait for). A channel, descriptor or fiber that is
// listed twice counts by its first place. Cost: proportional to the cases; no allocation, and system calls as for wait.
template <std::size_t N>
[[nodiscard]] std::expected<Selected, Error> select(Case (&&cases)[N], Deadline deadline = Deadline::never()) noexcept {
  return detail::select_erased(cases, N, deadline);
}
[[nodiscard]] inline std::expected<Selected, Error> select(std::span<Case> cases,
                                                           Deadline deadline = Deadline::never()) noexcept {
  return detail::select_erased(cases.data(), cases.size(), deadline);
}

}  // namespace coir
