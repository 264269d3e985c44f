#pragma once

#include <poll.h>

#include <coir/descriptor.h>

namespace coir {

// poll_events is what poll(2) is asked for a direction.
inline short poll_events(Direction direction) noexcept {
  constexpr short kEvents[] = {POLLIN, POLLOUT, POLLPRI | POLLRDHUP};
  return kEvents[static_cast<int>(direction)];
}

}  // namespace coir
