#pragma once

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstddef>
#include <expected>

#include <coir/atomic.h>
#include <coir/config.h>
#include <coir/error.h>
#include <coir/resting_wait.h>

#include "wait/park.h"

namespace coir {

// CrossThreadWakeup tells a run that plain threads may still wake its fibers. In single-worker builds it also carries
// the wakeup: no other thread may touch a fiber there, so the thread lists the fiber and rings, and `answer` wakes the
// listed fibers on the worker's own stack.
//
//   enter(self)   the fiber, before a thread can see it
//   ring()        the thread, after it has listed the fiber; single-worker builds
//   leave(self)   the fiber, after its wait, whatever ended it
#if COIR_SINGLE_WORKER
class CrossThreadWakeup {
 public:
  using Answer = void (*)() noexcept;
  explicit constexpr CrossThreadWakeup(Answer answer) noexcept { record_.answer = answer; }

  // Errors: limit (descriptors), no_memory, system.
  std::expected<void, Error> enter(FiberControl*) noexcept {
    if (fd_.load(std::memory_order_relaxed) < 0) {
      const int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
      if (fd < 0) return std::unexpected(Error::from_errno(errno));
      fd_.store(fd, std::memory_order_relaxed);
    }
    if (inside_ == 0) {
      if (auto armed = arm(); !armed) return armed;
    }
    ++inside_;
    return {};
  }

  void ring() noexcept {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t n = write(fd_.load(std::memory_order_relaxed), &one, sizeof one);
  }

  void leave(FiberControl*) noexcept {
    if (--inside_ == 0) static_cast<void>(disarm_resting_wait(record_));
  }

 private:
  struct Record : RestingWait {
    CrossThreadWakeup* wakeup = nullptr;
    Answer answer = nullptr;
  };

  // rung empties the descriptor and arms the record before it answers: a fiber that is listed later rings again.
  static void rung(RestingWait& resting) noexcept {
    auto& record = static_cast<Record&>(resting);
    std::uint64_t count;
    [[maybe_unused]] const ssize_t n = read(record.fd, &count, sizeof count);
    static_cast<void>(record.wakeup->arm());  // the descriptor is registered: nothing is left that could fail
    record.answer();
  }

  std::expected<void, Error> arm() noexcept {
    record_.wake = &rung;
    record_.wakeup = this;
    for (;;) {
      auto armed = arm_resting_wait(record_, fd_.load(std::memory_order_relaxed));
      // busy: this took the edge of a call that nobody waits for any more.
      if (armed || armed.error() != ErrorCode::busy) return armed;
    }
  }

  // fd_ is read by threads that were handed a call after it was set; it stays.
  SharedAtomic<int> fd_{-1};
  std::size_t inside_ = 0;
  Record record_{};
};
#else
class CrossThreadWakeup {
 public:
  using Answer = void (*)() noexcept;
  explicit constexpr CrossThreadWakeup(Answer) noexcept {}

  std::expected<void, Error> enter(FiberControl* self) noexcept {
    self->worker->scheduler().outside_waits.fetch_add(1, std::memory_order_relaxed);
    return {};
  }
  void ring() noexcept {}
  void leave(FiberControl* self) noexcept {
    self->worker->scheduler().outside_waits.fetch_sub(1, std::memory_order_relaxed);
  }
};
#endif

}  // namespace coir
