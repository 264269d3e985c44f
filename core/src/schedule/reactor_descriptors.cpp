#include "schedule/reactor.h"

#include <errno.h>
#include <sched.h>

#include <coir/detail/fatal.h>
#include <coir/format.h>
#include <coir/spinlock.h>

// Which descriptors the poller knows: from their first wait until they are closed.

namespace coir {

std::expected<void, Error> Reactor::enroll(int fd) noexcept {
  if (entry(fd) == nullptr)
    return std::unexpected(Error{fd < 0 ? ErrorCode::invalid : ErrorCode::limit, fd < 0 ? EBADF : EMFILE});
  Entry& at = *entry(fd);
  std::uint32_t seen = at.registered.load(std::memory_order_acquire);
  for (;;) {
    if (seen == kYes) {
      if constexpr (COIR_CLOSE_CHECKS) expect_watched(fd, at);
      return {};
    }
    if (seen == kEnded) return std::unexpected(Error{ErrorCode::closed, EBADF});
    if (seen == kClosing || seen == kAdding) {
      // A closing descriptor must not be registered now: it would be closed under the entry, and the number's next
      // owner would find it registered.
      sched_yield();
      seen = at.registered.load(std::memory_order_acquire);
    } else if (at.registered.compare_exchange_weak(seen, kAdding, std::memory_order_acq_rel,
                                                   std::memory_order_acquire)) {
      break;
    }
  }
  registered_.fetch_add(1, std::memory_order_relaxed);
  const int error = poller_.add(fd, at.tag.load(std::memory_order_acquire));
  std::uint32_t mine = kAdding;
  // If it is closing meanwhile, end has found it not registered and has woken the waiter.
  const bool kept = at.registered.compare_exchange_strong(mine, error == 0 ? kYes : kNo, std::memory_order_acq_rel,
                                                          std::memory_order_relaxed);
  if (error != 0 || !kept) registered_.fetch_sub(1, std::memory_order_relaxed);
  if (error != 0) return std::unexpected(error == EBADF ? Error{ErrorCode::closed, error} : Error::from_errno(error));
  int highest = highest_fd_.load(std::memory_order_relaxed);
  while (highest < fd &&
         !highest_fd_.compare_exchange_weak(highest, fd, std::memory_order_acq_rel, std::memory_order_relaxed)) {
  }
  return {};
}

// expect_watched ends the process if fd was closed by ::close. The kernel then watches it no more, and a wait for what
// has its number now would not end.
void Reactor::expect_watched(int fd, const Entry& at) noexcept {
  const std::uint32_t tag = at.tag.load(std::memory_order_acquire);
  if (fell_back() || poller_.watches(fd, tag)) return;
  // close_fd may be closing it, and end may have ended it.
  if (at.registered.load(std::memory_order_acquire) != kYes || at.tag.load(std::memory_order_acquire) != tag) return;
  static char text[96];
  Formatter out(std::span<char>(text).first(sizeof text - 1));
  out.add("descriptor ", fd, " was closed by ::close after a wait for it: use coir::close_fd");
  detail::fatal(text);
}

std::size_t Reactor::collect(void* self, std::span<pollfd> into) noexcept {
  auto& reactor = *static_cast<Reactor*>(self);
  const int count = reactor.highest_fd_.load(std::memory_order_acquire) + 1;
  if (count <= 0) return 0;
  reactor.rotate_ = (reactor.rotate_ + 1) % count;
  std::size_t written = 0;
  for (int i = 0; i < count; ++i) {
    const int fd = (reactor.rotate_ + i) % count;
    const Entry& at = reactor.entries_[fd];
    short wanted = 0;
    const Word readable = at.word[0].load(std::memory_order_acquire);
    const Word writable = at.word[1].load(std::memory_order_acquire);
    const Word urgent = at.word[2].load(std::memory_order_acquire);
    if (!holds_nobody(readable)) wanted |= POLLIN;
    if (!holds_nobody(writable)) wanted |= POLLOUT;
    if (!holds_nobody(urgent)) wanted |= POLLPRI | POLLRDHUP;
    if (wanted != 0) into[written++] = {.fd = fd, .events = wanted, .revents = 0};
  }
  return written;
}

}  // namespace coir
