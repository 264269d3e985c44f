#include <coir/print.h>

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include <coir/errno.h>

namespace coir {

bool print(std::string_view text) noexcept {
  const int before = errno;  // of what a signal handler has interrupted
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd room = {.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
      static_cast<void>(::poll(&room, 1, -1));
    } else if (errno != EINTR) {
      break;
    }
  }
  errno = before;
  return text.empty();
}

}  // namespace coir
