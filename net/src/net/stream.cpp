#include <coir/net/stream.h>

#include "kernel.h"

namespace coir {

std::expected<void, Error> Stream::write(std::string_view from, Deadline deadline) noexcept {
  while (!from.empty()) {
    const iovec part = {const_cast<char*>(from.data()), from.size()};
    const auto sent = write_some(std::span(&part, 1), deadline);
    if (!sent) return std::unexpected(sent.error());
    from.remove_prefix(*sent);
  }
  return {};
}

void Stream::abandon() noexcept {
  if (!is_open()) return;
#if defined(COIR_TLS) && COIR_TLS
  if (session_ != nullptr) end_session(false);
#endif
  kernel::reset_on_close(fd());
  tcp_.close();
}

}  // namespace coir
