#include "base/randomness.h"

#include <coir/atomic.h>
#include <coir/blocking.h>
#include <coir/net/randomness.h>
#include <coir/sleep.h>
#include <errno.h>
#include <sys/random.h>
#include <sys/types.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace coir {
namespace {

constinit SharedAtomic<bool> g_ready{false};
constinit SharedAtomic<bool> g_waited_for{false};

// KernelWait is the right to wait for the kernel in getrandom(2). It goes with the function to the thread that waits, be the
// caller there or not, and ends with that function, run or not.
class KernelWait {
 public:
  KernelWait() noexcept : held_(!g_waited_for.exchange(true)) {}
  KernelWait(KernelWait&& other) noexcept : held_(std::exchange(other.held_, false)) {}
  ~KernelWait() {
    if (held_) g_waited_for.store(false);
  }
  explicit operator bool() const noexcept { return held_; }

 private:
  bool held_;
};

// get_random returns 0 or errno, which is taken at once: see socket/kernel.h.
[[gnu::noinline]] int get_random(std::span<char> into, unsigned flags) noexcept {
  for (;;) {
    const ssize_t got = ::getrandom(into.data(), into.size(), flags);
    if (got == static_cast<ssize_t>(into.size())) return 0;
    if (got >= 0 || errno != EINTR) return got < 0 ? errno : EIO;
  }
}

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
    if (KernelWait right; right) {
      auto wait_for_kernel = [right = std::move(right)] {
        char byte;
        static_cast<void>(get_random({&byte, 1}, 0));
      };
      const auto waited = blocking(std::move(wait_for_kernel), deadline);
      if (!waited && waited.error().ends_waits()) return waited;
      if (randomness_ready()) break;
    }
    // Another caller's thread waits for the kernel, or no thread can.
    if (auto rested = sleep_until(std::min(deadline, Deadline::after(kLookAgain))); !rested) return rested;
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
