#pragma once

// Stands in the place of port's coir/port/poller.h where interleavings are explored: there is no kernel, and a scenario
// says itself when a descriptor becomes ready.

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace coir::port {

struct PollEvent {
  int fd;
  std::uint32_t tag;
  bool readable;
  bool writable;
  bool urgent;
  bool hung_up;
};

// Poller knows kDescriptors descriptors and is edge-triggered: a descriptor is reported when it gets ready, and when it
// is ready at the time it is added.
class Poller {
 public:
  static constexpr int kDescriptors = 4;
  enum class Kind : unsigned char { closed, epoll, ppoll };
  using Collect = std::size_t (*)(void* context, std::span<pollfd> into);

  int open(bool want_ppoll, std::size_t max_fds) noexcept;
  void close() noexcept;
  Kind kind() const noexcept { return kind_; }
  int add(int fd, std::uint32_t tag) noexcept;
  bool watches(int, std::uint32_t) noexcept { return true; }
  std::size_t wait(std::span<PollEvent> events, std::int64_t timeout_ns, Collect collect, void* context) noexcept;
  void interrupt() noexcept;

  // get_ready is the kernel's part: there is one thing more to be read from `fd`. A reader of all of them calls drain, a
  // reader of one calls take; both return whether there was something. A closed one is not opened again.
  static void get_ready(int fd) noexcept;
  static bool take(int fd) noexcept;
  static bool drain(int fd) noexcept;
  static void close_descriptor(int fd) noexcept;

 private:
  Kind kind_ = Kind::closed;
  bool interrupted_ = false;
};

}  // namespace coir::port
