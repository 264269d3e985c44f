#include <coir/signal.h>

#include <errno.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

#include <coir/atomic.h>
#include <coir/wait.h>

namespace coir {

namespace {

// Bit n is signal n. A signal handler may interrupt any thread, so that these are atomics in every build.
constinit SharedAtomic<std::uint64_t> g_arrived{0};
constinit SharedAtomic<std::uint64_t> g_caught{0};
constinit SharedAtomic<int> g_wakeup{-1};

void on_signal(int number) noexcept {
  const int saved = errno;
  g_arrived.fetch_or(std::uint64_t{1} << number, std::memory_order_release);
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = write(g_wakeup.load(std::memory_order_relaxed), &one, sizeof one);
  errno = saved;
}

// take returns one of the wanted signals that have arrived, or 0.
int take(std::uint64_t wanted) noexcept {
  const std::uint64_t arrived = g_arrived.load(std::memory_order_acquire) & wanted;
  if (arrived == 0) return 0;
  const int number = __builtin_ctzll(arrived);
  g_arrived.fetch_and(~(std::uint64_t{1} << number), std::memory_order_acq_rel);
  return number;
}

}  // namespace

std::expected<void, Error> catch_signals(std::initializer_list<int> signals) noexcept {
  if (g_wakeup.load(std::memory_order_relaxed) < 0) {
    const int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (fd < 0) return std::unexpected(Error::from_errno(errno));
    g_wakeup.store(fd, std::memory_order_relaxed);
  }
  for (const int number : signals) {
    if (number < 1 || number > 63) return std::unexpected(Error{ErrorCode::invalid, EINVAL});
    const std::uint64_t bit = std::uint64_t{1} << number;
    if ((g_caught.load(std::memory_order_relaxed) & bit) != 0) continue;
    struct sigaction action{};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    if (sigaction(number, &action, nullptr) != 0) return std::unexpected(Error::from_errno(errno));
    g_caught.fetch_or(bit, std::memory_order_relaxed);
  }
  return {};
}

int signals_fd() noexcept {
  return g_wakeup.load(std::memory_order_relaxed);
}

std::expected<int, Error> wait_signal(std::initializer_list<int> signals, Deadline deadline) noexcept {
  if (auto caught = catch_signals(signals); !caught) return std::unexpected(caught.error());
  std::uint64_t wanted = 0;
  for (const int number : signals) wanted |= std::uint64_t{1} << number;
  const int fd = g_wakeup.load(std::memory_order_relaxed);
  for (;;) {
    if (const int number = take(wanted); number != 0) return number;
    std::uint64_t count;
    if (read(fd, &count, sizeof count) > 0) continue;  // a signal may have come between the two looks
    if (auto ready = wait(fd, Direction::readable, deadline); !ready) return std::unexpected(ready.error());
  }
}

}  // namespace coir
