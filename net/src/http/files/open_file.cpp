#include "http/files/open_file.h"

#include <coir/port/beneath.h>
#include <coir/program.h>
#include <coir/sleep.h>
#include <errno.h>
#include <unistd.h>

namespace coir::http {

void OpenFile::reset(int fd) noexcept {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

int status_of(int negative_errno) noexcept {
  if (Error(ErrorCode::system, -negative_errno).is_disk_full()) return 507;
  switch (-negative_errno) {
    case EACCES:
    case EPERM:
    case EROFS:
      return 403;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return 503;
    case EIO:
      return 500;
    default:
      return 404;
  }
}

bool await_descriptor(Exchange& exchange, Deadline late) noexcept {
  if (exchange.free_descriptor()) return true;
  if constexpr (kFibers) {
    return !late.passed() && sleep(std::chrono::milliseconds(20));
  } else {
    return false;
  }
}

int open_with_room(Exchange& exchange, int root, const char* relative, std::span<char> work) noexcept {
  return with_room(exchange, [&] { return port::open_beneath(root, relative, work); });
}

}  // namespace coir::http
