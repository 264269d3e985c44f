#include <coir/config.h>
#include <coir/port/futex.h>
#include <coir/port/spinning.h>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

namespace coir::port {

namespace {

// The thread sanitizer keeps a signal that meets a thread in a system call which it does not know, until the thread
// makes a call that it does know. There, sleepers look for signals now and then.
std::int64_t interruptible(std::int64_t timeout_ns) noexcept {
  if constexpr (!COIR_TSAN) return timeout_ns;
  constexpr std::int64_t kOftenNs = 50'000'000;
  usleep(0);
  return timeout_ns < 0 || timeout_ns > kOftenNs ? kOftenNs : timeout_ns;
}

// SYS_futex takes a limit in words of the CPU, although libc's time_t has 64 bits on every CPU. (Every kernel has this
// call. The call with wider times, since Linux 5.1, is of no use for waits as short as these.)
struct Limit {
  long seconds, nanoseconds;
};

}  // namespace

void futex_wait(SharedAtomic<std::uint32_t>& word, std::uint32_t expected, std::int64_t timeout_ns) noexcept {
  expect_no_spinlock("futex");
  timeout_ns = interruptible(timeout_ns);
  constexpr std::int64_t kMost = std::numeric_limits<long>::max();
  Limit limit{.seconds = static_cast<long>(std::min(timeout_ns / 1'000'000'000, kMost)),
              .nanoseconds = static_cast<long>(timeout_ns % 1'000'000'000)};
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, timeout_ns < 0 ? nullptr : &limit, nullptr, 0);
}

void futex_wake(SharedAtomic<std::uint32_t>& word) noexcept {
  expect_no_spinlock("futex");
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace coir::port
