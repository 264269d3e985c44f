#pragma once

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <coir/config.h>
#include <coir/deadline.h>

#if !COIR_NO_ASYNC
#include <coir/fiber.h>
#include <coir/inspect.h>
#include <coir/runtime.h>

#include <atomic>
#include <string_view>
#endif

#include "pipe.h"

namespace coir::test {

inline constexpr int kQuickTurns = 100;
inline constexpr unsigned kPauseMicros = 200;

// step_aside lets others get on: other fibers and what the poller and the timers have, or on a plain thread other
// threads. A caller that has come often parks, so that it takes no CPU from those it waits for.
inline void step_aside(int turn) noexcept {
#if !COIR_NO_ASYNC
  if (current().id() != 0) {
    if (turn < kQuickTurns || !sleep(std::chrono::microseconds(kPauseMicros))) yield_to_events();
    return;
  }
#endif
  if (turn < kQuickTurns) {
    sched_yield();
  } else {
    usleep(kPauseMicros);
  }
}

// until returns true once `holds` does, which it asks over and over, or false when the deadline has passed. Without one
// the time limit ends a test whose condition never comes. Any fiber, any thread.
template <class Condition>
bool until(Condition holds, Deadline deadline = Deadline::never()) {
  for (int turn = 0; !holds(); turn += turn < kQuickTurns) {
    if (deadline.passed()) return false;
    step_aside(turn);
  }
  return true;
}

// fds_are_back_to tells once no more descriptors are open than `before`. AddressSanitizer opens a file for each new thread.
inline bool fds_are_back_to(int before) {
  return until([before] { return count_fds() <= before; }, Deadline::after(std::chrono::seconds(60)));
}

// until_blocked returns once the kernel has put a thread of this process to sleep, or it has ended.
inline void until_blocked(pid_t thread) {
  until([thread] {
    char name[40], text[200];
    snprintf(name, sizeof name, "/proc/self/task/%d/stat", static_cast<int>(thread));
    const int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return true;
    const ssize_t n = ::read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char* const state = strrchr(text, ')');  // its name is in brackets, and may hold some
    return state == nullptr || state[2] == 'S';
  });
}

#if !COIR_NO_ASYNC

// Together counts how many are inside at a time. Each that visits stays until `limit` have been, and some turns longer,
// so that one too many is seen as well.
class Together {
 public:
  explicit Together(int limit) noexcept : limit_(limit) {}
  void visit() {
    const int now = ++inside_;
    for (int seen = most_; now > seen && !most_.compare_exchange_weak(seen, now);) {
    }
    until([this] { return most_ >= limit_; });
    for (int turn = 0; turn < 3; ++turn) yield();
    --inside_;
  }
  int most() const noexcept { return most_; }

 private:
  const int limit_;
  std::atomic<int> inside_{0}, most_{0};
};

// until_parked returns once the fiber waits: for `what`, a word of FiberInfo::waits_for, or for anything. False: it has
// ended. It orders nothing: what the fiber wrote before its wait is passed on by whatever it waits for. Any fiber, any
// thread.
inline bool until_parked(const FiberRef& fiber, std::string_view what = {}) {
  bool alive = true;
  until([&] {
    const auto info = inspect(fiber);
    alive = info.has_value();
    return !alive || (info->state == FiberState::parked && (what.empty() || info->waits_for == what));
  });
  return alive;
}

// until_sleepers returns once that many fibers or more wait with a deadline: it is for siblings that sleep for ever.
// Any fiber, any thread.
inline void until_sleepers(std::uint32_t fibers) {
  until([fibers] { return stats().timers_armed >= fibers; });
}

// until_polled returns once the poller has handed out every readiness that was there before the call: it tells of
// descriptors in the order in which they got ready, and this one is the last. Fibers only.
inline bool until_polled() {
  Pipe last;
  return last.put() && wait(last.reader, Direction::readable).has_value();
}

#endif

}  // namespace coir::test
