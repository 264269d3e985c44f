#include <coir/net/stream.h>

#include "socket/kernel.h"
#include "socket/write_all.h"

namespace coir {

std::expected<void, Error> Stream::write(std::string_view from, Deadline deadline) noexcept {
  return write_all(*this, from, deadline);
}

void Stream::abandon() noexcept {
  if (!is_open()) return;
  if (session_ != nullptr) end_session(false);
  kernel::reset_on_close(fd());
  tcp_.close();
}

}  // namespace coir
