#include <coir/pin_watch.h>
#include <coir/wait.h>
#include <errno.h>

#include <algorithm>

using namespace std::chrono_literals;

namespace coir {

namespace {

// Linux before 6.6 wakes no waiter of a line when its chip vanishes.
constexpr auto kLook = 1s;

Error to_error(int number) noexcept {
  if (number == ENODEV) return {ErrorCode::closed, number};
  if (number == EAGAIN) return {ErrorCode::temporary, number};
  return Error::from_errno(number);
}

}  // namespace

PinWatch::~PinWatch() {
  if (const int fd = pin_.release_fd(); fd >= 0) close_fd(fd);
}

std::expected<port::PinEdge, Error> PinWatch::poll() noexcept {
  const auto edge = pin_.next_edge();
  if (!edge) return std::unexpected(to_error(edge.error()));
  return *edge;
}

std::expected<bool, Error> PinWatch::read() noexcept {
  const auto level = pin_.read();
  if (!level) return std::unexpected(to_error(level.error()));
  return *level;
}

std::expected<port::PinEdge, Error> PinWatch::next(Deadline deadline) noexcept {
  for (;;) {
    const auto edge = poll();
    if (edge || edge.error() != ErrorCode::temporary) return edge;
    const auto ready = wait(fd(), direction(), std::min(deadline, Deadline::after(kLook)));
    if (ready) continue;
    if (!ready.error().is_late() || deadline.passed()) return std::unexpected(ready.error());
    if (const auto level = read(); !level) return std::unexpected(level.error());
  }
}

}  // namespace coir
