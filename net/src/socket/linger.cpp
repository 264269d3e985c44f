#include "socket/linger.h"

#include <coir/worker_stack.h>
#include <errno.h>

#include "socket/kernel.h"

namespace coir {

Linger::Step Linger::drop(int fd) noexcept {
  return on_worker_stack([&]() noexcept {
    char unwanted[8192];
    for (std::size_t turn = 0; turn < kTurnBytes && dropped_ < kMostBytes;) {
      const ssize_t got = kernel::receive(fd, unwanted, sizeof unwanted);
      if (got == -EINTR) continue;
      if (got == -EAGAIN) return Step::waits;
      if (got <= 0) return Step::over;
      turn += static_cast<std::size_t>(got);
      dropped_ += static_cast<std::size_t>(got);
    }
    return dropped_ < kMostBytes ? Step::more : Step::over;
  });
}

}  // namespace coir
