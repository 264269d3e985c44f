#pragma once

// Finds the descriptors that are ready, by epoll or ppoll.
//
//   Poller poller;
//   if (poller.open(false, 1024) != 0 || poller.add(fd, 7) != 0) return complain(errno);
//   PollEvent events[16];
//   const std::size_t count = poller.wait(events, 1'000'000'000, nullptr, nullptr);
//   for (const PollEvent& each : std::span(events, count)) show(each.tag, each.readable);
//   poller.close();

#include <coir/config.h>
#include <coir/port/needs_fibers.h>

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <span>

struct epoll_event;

namespace coir::port {

// PollEvent tells of one descriptor. `tag` is what add() was given (epoll), or 0 (ppoll).
struct PollEvent {
  int fd;
  std::uint32_t tag;
  bool readable;
  bool writable;
  bool urgent;
  bool hung_up;  // the peer is gone or half-closed, or the descriptor failed: this news may not be repeated
};

// Poller asks the kernel which descriptors are ready: by epoll, edge-triggered, or by ppoll where epoll is missing
// (ENOSYS). One thread waits at a time; add and interrupt may be called by any thread meanwhile.
class Poller {
 public:
  enum class Kind : unsigned char { closed, epoll, ppoll };

  // open picks epoll, or ppoll when the kernel has no epoll or `want_ppoll` is set. Returns 0 or an errno.
  int open(bool want_ppoll, std::size_t max_fds) noexcept;
  void close() noexcept;

  Kind kind() const noexcept { return kind_; }

  // add registers `fd` for both directions, edge-triggered, until it is closed. With ppoll there is nothing to do.
  // Returns 0 or an errno.
  int add(int fd, std::uint32_t tag) noexcept;

  // watches tells whether `fd` is still registered: it is not once it was closed, or its number is another's. epoll only.
  bool watches(int fd, std::uint32_t tag) noexcept;

  // Collect fills in what ppoll is to watch and returns how many entries it wrote. epoll never calls it.
  using Collect = std::size_t (*)(void* context, std::span<pollfd> into);

  // wait fills `events` and returns their number. timeout_ns < 0: until an event or interrupt(). It may return a
  // millisecond early with no event.
  std::size_t wait(std::span<PollEvent> events, std::int64_t timeout_ns, Collect collect, void* context) noexcept;

  // interrupt makes a wait in progress, or the next, return. From any thread; from a signal handler too.
  void interrupt() noexcept;

 private:
  std::size_t wait_epoll(std::span<PollEvent> events, std::int64_t timeout_ns) noexcept;
  int sleep_in_epoll(epoll_event* raw, int room, std::int64_t timeout_ns) noexcept;
  std::size_t wait_ppoll(std::span<PollEvent> events, std::int64_t timeout_ns, Collect collect, void* context) noexcept;
  void drain_wakeup() noexcept;
  static epoll_event event_of(int fd, std::uint32_t tag) noexcept;

  Kind kind_ = Kind::closed;
  int epoll_fd_ = -1;
  int wakeup_fd_ = -1;
  // Until the kernel says that it has not. The thread sanitizer does not know the call, and would keep a signal that comes
  // just before it until the sleep ends.
  bool has_pwait2_ = !COIR_TSAN;
  std::span<pollfd> watched_;
};

}  // namespace coir::port
