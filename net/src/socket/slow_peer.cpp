#include "socket/slow_peer.h"

#include <coir/net/stream.h>

namespace coir {

std::expected<std::size_t, Error> write_some_patiently(Stream& stream, std::span<const iovec> from,
                                                       std::chrono::milliseconds timeout, Deadline deadline) noexcept {
  const auto attempt = [&](Deadline until) { return stream.write_some(from, until); };
  auto sent = attempt(Deadline::now());
  if (sent || !sent.error().is_late() || deadline.passed()) return sent;
  return while_taking(stream.fd(), timeout, deadline, attempt);
}

}  // namespace coir
