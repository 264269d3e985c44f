#include "http/serial/poll_set.h"

#include <coir/serial.h>

namespace coir::http {

void PollSet::watch(int fd, std::span<const TcpListener> listeners, bool accepting, const ConnectionList& resting,
                    Keeper* keepers) noexcept {
  entries_[1] = {.fd = fd, .events = POLLIN, .revents = 0};
  std::size_t at = kOwnEntries;
  for (const TcpListener& listener : listeners) {
    entries_[at++] = {.fd = accepting ? listener.fd() : -1, .events = POLLIN, .revents = 0};
  }
  resting_at_ = at;
  for (const Connection* connection = resting.front(); connection != nullptr; connection = connection->next) {
    entries_[at++] = {.fd = connection->stream.fd(), .events = POLLIN, .revents = 0};
  }
  kept_at_ = at;
  for (Keeper* keeper = keepers; keeper != nullptr; keeper = keeper->next) {
    for (const Direction direction : kDirections) {
      const short events = direction == Direction::readable ? POLLIN : POLLOUT;
      for (const Connection* connection = keeper->resting(direction).front(); connection != nullptr;
           connection = connection->next) {
        entries_[at++] = {.fd = connection->stream.fd(), .events = events, .revents = 0};
      }
    }
  }
  count_ = at;
}

std::expected<std::size_t, Error> PollSet::wait(Deadline deadline) noexcept {
  return wait_any({entries_, count_}, deadline);
}

}  // namespace coir::http
