#include "base/randomness.h"

#include <coir/atomic.h>
#include <coir/config.h>
#include <coir/net/randomness.h>
#include <coir/sleep.h>
#include <coir/stack_size.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/time.h>
#include <sys/types.h>

#include <algorithm>
#include <cstdint>

namespace coir {
namespace {

constinit SharedAtomic<bool> g_ready{false};

// get_random returns 0 or errno, which is taken at once: see socket/kernel.h.
[[gnu::noinline]] int get_random(std::span<char> into, unsigned flags) noexcept {
  for (;;) {
    const ssize_t got = ::getrandom(into.data(), into.size(), flags);
    if (got == static_cast<ssize_t>(into.size())) return 0;
    if (got >= 0 || errno != EINTR) return got < 0 ? errno : EIO;
  }
}

#if COIR_NO_ASYNC

// begin_kernel_wait holds up the only thread there is, until the kernel has random numbers or a signal comes, after a second.
bool begin_kernel_wait() noexcept {
  struct sigaction interrupt{}, before;
  interrupt.sa_handler = [](int) {};  // without SA_RESTART
  const itimerval second = {.it_interval = {.tv_sec = 1, .tv_usec = 0}, .it_value = {.tv_sec = 1, .tv_usec = 0}};
  itimerval timer;
  if (::sigaction(SIGALRM, &interrupt, &before) != 0) return false;
  if (::setitimer(ITIMER_REAL, &second, &timer) == 0) {
    char byte;
    static_cast<void>(!::getrandom(&byte, 1, 0));
    ::setitimer(ITIMER_REAL, &timer, nullptr);
  }
  ::sigaction(SIGALRM, &before, nullptr);
  return true;
}

#else

constinit SharedAtomic<bool> g_waited_for{false};

void* wait_for_kernel(void*) noexcept {
  char byte;
  static_cast<void>(get_random({&byte, 1}, 0));
  g_waited_for.store(false);
  return nullptr;
}

// begin_kernel_wait has a thread wait in getrandom(2), unless one does. It is none of the pool for blocking calls, which plain
// threads, and what comes before the run, do not reach.
bool begin_kernel_wait() noexcept {
  if (g_waited_for.exchange(true)) return false;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, 16_KiB * kStackInflation);
  // Signals are for the program's own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  pthread_t thread;
  if (pthread_create(&thread, &attributes, wait_for_kernel, nullptr) != 0) g_waited_for.store(false);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  return false;
}

#endif

}  // namespace

bool randomness_ready() noexcept {
  char byte;
  if (g_ready.load(std::memory_order_relaxed)) return true;
  // A kernel without that call is not waited for.
  const bool ready = get_random({&byte, 1}, GRND_NONBLOCK) != EAGAIN;
  if (ready) g_ready.store(true, std::memory_order_relaxed);
  return ready;
}

std::expected<void, Error> await_randomness(Deadline deadline) noexcept {
  constexpr auto kLookAgain = std::chrono::milliseconds(250);
  while (!randomness_ready()) {
    if (deadline.passed()) return std::unexpected(Error{ErrorCode::timed_out});
    const auto pause = begin_kernel_wait() ? std::chrono::milliseconds(0) : kLookAgain;
    if (auto rested = sleep_until(std::min(deadline, Deadline::after(pause))); !rested) return rested;
  }
  return {};
}

std::expected<void, Error> draw_secret(std::span<char> into, Deadline deadline) noexcept {
  for (;;) {
    const int error = get_random(into, GRND_NONBLOCK);
    if (error == 0) return {};
    if (error != EAGAIN) return std::unexpected(Error::from_errno(error));
    if (auto ready = await_randomness(deadline); !ready) return ready;
  }
}

void fill_with_randomness(std::span<char> into) noexcept {
  if (::getrandom(into.data(), into.size(), GRND_NONBLOCK) == static_cast<ssize_t>(into.size())) return;
  // SplitMix64 (Steele, Lea, Flood 2014).
  auto state = static_cast<std::uint64_t>(monotonic_ns());
  for (char& each : into) {
    state += 0x9e3779b97f4a7c15;
    std::uint64_t mixed = state;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
    each = static_cast<char>(mixed >> 56);
  }
}

}  // namespace coir
