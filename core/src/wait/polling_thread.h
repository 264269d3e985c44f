#pragma once

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <expected>
#include <span>

#include <coir/deadline.h>
#include <coir/error.h>
#include <coir/wait.h>

#include "fiber/waiter.h"
#include "wait/current_scope.h"
#include "wait/poll_events.h"

namespace coir {

// PollingThread is a plain thread that waits for descriptors and for a claim at the same time: in poll(2), for the
// descriptors and for an eventfd of its own.
class PollingThread : public Waiter {
 public:
  PollingThread() noexcept : Waiter(&wake_thread, 0), wakeup_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~PollingThread() {
    if (wakeup_ >= 0) ::close(wakeup_);
  }
  PollingThread(const PollingThread&) = delete;
  PollingThread& operator=(const PollingThread&) = delete;

  bool usable() const noexcept { return wakeup_ >= 0; }

  // park fills in which `entries` are ready; the last entry is for the eventfd. The waiter is armed before.
  WakeReason park(std::span<pollfd> entries, Deadline deadline) noexcept {
    const ShownWait shown(*this);
    if (!begin_scoped_wait(deadline) && claim(WakeReason::cancelled) != Claim::lost) return reason();
    entries.back() = {.fd = wakeup_, .events = POLLIN, .revents = 0};
    if (commit()) {
      while (awake_.load(std::memory_order_acquire) == 0) {
        const int ready = poll(entries.data(), entries.size(), deadline.remaining_ms());
        if (ready > 0 && entries.back().revents == 0) {
          if (claim(WakeReason::ready) != Claim::lost) break;
        } else if (ready <= 0 && deadline.passed()) {
          if (claim(WakeReason::timed_out) != Claim::lost) break;
        }
        // Otherwise another source has won, and is ringing or about to ring.
      }
    }
    return reason();
  }

 private:
  // The thread leaves only once awake_ is set: the eventfd is not closed before the waker has written to it.
  static void wake_thread(Waiter& waiter) noexcept {
    auto& self = static_cast<PollingThread&>(waiter);
    const std::uint64_t one = 1;
    static_cast<void>(!::write(self.wakeup_, &one, sizeof one));
    self.awake_.store(1, std::memory_order_release);
  }

  int wakeup_;
  SharedAtomic<std::uint32_t> awake_{0};
};

// poll_now fills in which of `entries` are ready, without waiting. Errors: timed_out (none is), system.
std::expected<void, Error> poll_now(std::span<pollfd> entries) noexcept;

// poll_on_thread waits until one of `entries` is ready and fills in which; the last entry is its own. Cancelling a
// scope around the wait ends it at once; without an eventfd, or where no other thread may touch a scope, the next wait
// sees the cancellation. Errors: timed_out, cancelled, system.
std::expected<void, Error> poll_on_thread(std::span<pollfd> entries, Deadline deadline,
                                          Shielded shielded = Shielded::no) noexcept;

}  // namespace coir
